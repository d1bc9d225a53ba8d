#include "bind_lock.h"

#include <atomic>
#include <stdexcept>
#include <thread>

namespace ggufbpe {

namespace {

using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;

constexpr size_t WORTH_RELEASING = 2000;  // bytes; below, releasing and retaking the lock costs more
constexpr auto HARD_TO_GET = 2ms;         // of waiting: another thread runs Python code, and does not give it up by itself
constexpr auto KEPT_AT_FIRST = 15ms;      // while it is hard to get: three times the usual wait
constexpr auto TRIED_AGAIN = 300ms;       // then it is measured again how hard it is to get
constexpr auto SIGNALS_EVERY = 10ms;
constexpr auto OBJECTS_EVERY = 1ms;
constexpr auto ASKED_EVERY = 100ms;       // for either, while it is hard to get: some 5 % of the time is spent waiting

// How long taking the lock took lately, and when that was measured. Threads may overwrite each other's value: it is an
// estimate.
std::atomic<int64_t> usual_wait{0}, measured{0};
std::atomic<uint64_t> all_requests{0};

// The number of current calls of some length, on all threads. In the child of a fork the other threads are gone and will not
// report that their calls ended, so calls counted before a fork do not count after it.
class CallCount {
public:
    // Counts one more; returns how many there were. remove() needs `forks`.
    uint32_t add(uint32_t &forks) {
        forks = static_cast<uint32_t>(fork_count());
        uint64_t before = state_.load(std::memory_order_relaxed);
        while (!state_.compare_exchange_weak(before, state_of(forks, in(before, forks) + 1), std::memory_order_relaxed)) {
        }
        return in(before, forks);
    }
    void remove(uint32_t forks) {
        if (forks == static_cast<uint32_t>(fork_count())) state_.fetch_sub(1, std::memory_order_relaxed);
    }
    uint32_t now() const { return in(state_.load(std::memory_order_relaxed), static_cast<uint32_t>(fork_count())); }

private:
    static uint64_t state_of(uint32_t forks, uint32_t calls) { return uint64_t(forks) << 32 | calls; }
    static uint32_t in(uint64_t state, uint32_t forks) { return state >> 32 == forks ? static_cast<uint32_t>(state) : 0; }

    std::atomic<uint64_t> state_{0};  // the number of forks, and the calls since then
} calls;

int64_t in_ns(std::chrono::steady_clock::time_point time) { return Nanoseconds(time.time_since_epoch()).count(); }

bool is_hard_to_get() { return usual_wait.load(std::memory_order_relaxed) > Nanoseconds(HARD_TO_GET).count(); }

// Several calls wait for each other and, with more threads than processors, for their turn to run: that says nothing about a
// thread that keeps the lock.
void remember_wait(int64_t begun, int64_t ended) {
    if (calls.now() > 1) return;
    const int64_t before = usual_wait.load(std::memory_order_relaxed), wait = ended - begun;
    const bool is_hard = wait > Nanoseconds(HARD_TO_GET).count();  // once is enough to know
    usual_wait.store(is_hard ? wait : before + (wait - before) / 2, std::memory_order_relaxed);
    measured.store(ended, std::memory_order_relaxed);
}

void take_lock(PyThreadState *state) {
    in_python([&] { PyEval_RestoreThread(state); });
}

void look_at_signals() {
    if (in_python([] { return PyErr_CheckSignals(); })) throw nanobind::python_error();
}

// The number of the thread that `threading` takes for the main one; -1 with an exception if it cannot be asked.
unsigned long main_thread_number() {
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *thread = threading ? PyObject_CallMethod(threading, "main_thread", nullptr) : nullptr;
    PyObject *number = thread ? PyObject_GetAttrString(thread, "ident") : nullptr;
    const unsigned long found = number ? PyLong_AsUnsignedLong(number) : static_cast<unsigned long>(-1);
    Py_XDECREF(number);
    Py_XDECREF(thread);
    Py_XDECREF(threading);
    return found;
}

// Whether this thread handles signals. Needs the interpreter's lock. In the child of a fork it is the thread that forked.
bool is_main_thread() {
    static std::atomic<unsigned long> main_thread{0};
    static std::atomic<uint64_t> asked_after{UINT64_MAX};  // the number of forks when it was asked
    if (asked_after.load() != fork_count()) {
        const unsigned long number = in_python(main_thread_number);
        if (PyErr_Occurred()) throw nanobind::python_error();
        main_thread.store(number);
        asked_after.store(fork_count());
    }
    return PyThread_get_thread_ident() == main_thread.load();
}

}  // namespace

const Poll LOOK_AT_SIGNALS = look_at_signals;

StopsUnwinding::~StopsUnwinding() {
    while (!is_done_) std::this_thread::sleep_for(1h);
}

InterpreterLock::InterpreterLock(size_t bytes)
    : is_short_(bytes < WORTH_RELEASING), runs_handlers_(!is_short_ && is_main_thread()) {
    if (is_short_) return;
    begun_ = looked_at_signals_ = made_objects_ = Clock::now();
    // All calls try again together: those that keep the lock would make it hard to get for the others.
    const int64_t now = in_ns(begun_);
    if (is_hard_to_get() && now - measured.load(std::memory_order_relaxed) > Nanoseconds(TRIED_AGAIN).count()) {
        usual_wait.store(0, std::memory_order_relaxed);
        measured.store(now, std::memory_order_relaxed);
    }
    if (calls.add(counted_after_) > 0 || !is_hard_to_get()) release();
}

void InterpreterLock::release() {
    if (!state_) state_ = PyEval_SaveThread();
}

uint64_t InterpreterLock::requests() { return all_requests.load(std::memory_order_relaxed); }

InterpreterLock::~InterpreterLock() {
    take();
    if (!is_short_) calls.remove(counted_after_);
}

bool InterpreterLock::take() {
    if (!state_) return false;
    all_requests.fetch_add(1, std::memory_order_relaxed);
    const int64_t begun = in_ns(Clock::now());
    take_lock(state_);
    state_ = nullptr;
    remember_wait(begun, in_ns(Clock::now()));
    return true;
}

void InterpreterLock::poll() {
    if (is_short_) {  // only work that is done once polls for so few bytes
        if (!state_) look_at_signals();
        return;
    }
    const Clock::time_point now = Clock::now();
    const bool is_due = state_ ? runs_handlers_ && now - looked_at_signals_ >= (is_hard_to_get() ? ASKED_EVERY : SIGNALS_EVERY)
                               : now - begun_ >= KEPT_AT_FIRST;
    if (is_due) {
        looked_at_signals_ = now;
        take();
        if (runs_handlers_) look_at_signals();
        release();
    }
}

bool InterpreterLock::is_due_to_take() {
    if (!state_) return true;
#if !defined(__GLIBC__) && PY_VERSION_HEX < 0x030E0000
    // When the interpreter ends, this thread would vanish, and with it the stack that the call's other threads use.
    if (!runs_handlers_) return false;
#endif
    const Clock::time_point now = Clock::now();
    if (now - made_objects_ < (is_hard_to_get() ? ASKED_EVERY : Clock::duration(OBJECTS_EVERY))) return false;
    made_objects_ = now;
    return true;
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}
Unlocked::~Unlocked() { take_lock(state_); }

void LongLock::lock() {
    const uint64_t here = fork_count() + 1;
    for (uint64_t holder = NOBODY; !holder_.compare_exchange_weak(holder, here, std::memory_order_acquire); holder = NOBODY) {
        if (holder != NOBODY && holder != here) {
            throw std::runtime_error("another thread was at work on this object when the process forked: make a new one");
        }
        if (holder != NOBODY) std::this_thread::sleep_for(1ms);
    }
}

}  // namespace ggufbpe
