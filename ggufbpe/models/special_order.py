"""The order in which llama.cpp looks for special tokens: the longest first, equal ones as `std::sort` leaves them."""

from __future__ import annotations

_INSERTION_SORT_UP_TO = 16  # elements; libstdc++'s _S_threshold


def sort_longest_first(items: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """`items`, (length, id) with ids ascending, by falling length in the order of libstdc++'s `std::sort`.

    Equal lengths keep no order there, and which of two overlapping special tokens of one length wins depends
    on it, so the algorithm is followed: quicksort by the median of three down to 16 elements, heapsort where
    that goes too deep, and an insertion sort over all at the end.

    >>> sort_longest_first([(1, 0), (3, 1), (3, 2)])
    [(3, 1), (3, 2), (1, 0)]
    """
    items = list(items)
    ranges = [(0, len(items), 2 * (len(items).bit_length() - 1))]
    while ranges:
        first, last, depth = ranges.pop()
        while last - first > _INSERTION_SORT_UP_TO:
            if depth == 0:
                items[first:last] = _heap_sorted(items[first:last])
                break
            depth -= 1
            cut = _partition(items, first, last)
            ranges.append((cut, last, depth))
            last = cut
    return sorted(items, key=lambda item: -item[0])  # stable, as insertion sort is


def _heap_sorted(heap: list[tuple[int, int]]) -> list[tuple[int, int]]:
    size = len(heap)
    for parent in range((size - 2) // 2, -1, -1):
        _sift(heap, parent, size, heap[parent])
    for end in range(size - 1, 0, -1):
        value, heap[end] = heap[end], heap[0]
        _sift(heap, 0, end, value)
    return heap


def _sift(heap: list[tuple[int, int]], hole: int, size: int, value: tuple[int, int]) -> None:
    """Let the hole sink to the bottom, then let `value` rise from there: this decides the order of equal lengths."""
    top = child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and heap[(hole - 1) // 2][0] > value[0]:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = value


def _partition(items: list[tuple[int, int]], first: int, last: int) -> int:
    """Partition `items[first:last]` around the median of three; returns where the second part begins."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1

    def before(i: int, j: int) -> bool:
        return items[i][0] > items[j][0]

    if before(a, b):
        median = b if before(b, c) else c if before(a, c) else a
    else:
        median = a if before(a, c) else c if before(b, c) else b
    items[first], items[median] = items[median], items[first]
    low, high = first + 1, last
    while True:
        while before(low, first):
            low += 1
        high -= 1
        while before(first, high):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1
