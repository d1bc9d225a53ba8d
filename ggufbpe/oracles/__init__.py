"""Who else can be asked for the ids of a text: llama.cpp in its several forms, other libraries, recorded ids."""
