"""Images and audio in chats: sizes and lengths, and their tokens under a projector."""
