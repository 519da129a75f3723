// Threads of a block that touch the same shared memory, one of them writing, with nothing between
// that says who is first. The compiler calls a function before each access (-fsanitize=thread):
// those of a library, or these. A barrier is between accesses, and __syncwarp is for threads that
// come to it; other exchanges between threads are not. What memcpy and memset do where they are
// functions goes unseen.
#pragma once

#include <cstdint>

#ifdef __SANITIZE_THREAD__
constexpr bool WATCHED = true;
#define UNSEEN __attribute__((no_sanitize("thread")))
#else
constexpr bool WATCHED = false;
#define UNSEEN
#endif

#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

// What the threads of a block have touched since the last barrier, byte by byte.
class Touched {
  public:
    UNSEEN Touched()
    {
        // Shared memory is what is `thread_local` in the program.
        auto find = [](dl_phdr_info* program, size_t, void* self) {
            for (unsigned i = 0; i < program->dlpi_phnum; i++)
                if (program->dlpi_phdr[i].p_type == PT_TLS)
                    static_cast<Touched*>(self)->is(program->dlpi_tls_data, program->dlpi_phdr[i].p_memsz);
            return 1;
        };
        dl_iterate_phdr(find, this);
        for (unsigned thread = 0; thread < COUNT; thread++) meet_all(thread);
        current = this;
    }
    UNSEEN ~Touched() { current = nullptr; }
    static thread_local Touched* current;

    // A thread touches memory, by the instruction before `who`.
    UNSEEN void touch(unsigned thread, const void* to, unsigned many, bool writes, const void* who)
    {
        const uintptr_t at = reinterpret_cast<uintptr_t>(to) - first;
        if (!WATCHED || at >= bytes) return;
        const Known& now = known[thread];
        for (uintptr_t byte = at; byte < at + many; byte++) {
            auto& page = pages[byte / PAGE];
            if (!page) page.reset(new Cell[PAGE]());
            Cell& cell = page[byte % PAGE];
            if (cell.epoch != now.epoch) cell.epoch = now.epoch, cell.written = cell.readers[0] = cell.readers[1] = 0;
            if (cell.written > 0 && !before(cell.writer, cell.written, thread))
                race(writes ? "writes and writes" : "writes and reads", cell.writer, cell.wrote, thread, who, byte);
            if (!writes) {
                cell.read[thread] = now.of[thread % 32];
                cell.readers[thread / 64] |= 1ull << thread % 64;
                cell.reads = who;
                continue;
            }
            for (unsigned half = 0; half < COUNT / 64; half++) {
                for (uint64_t left = cell.readers[half]; left != 0; left &= left - 1) {
                    const unsigned reader = 64 * half + unsigned(__builtin_ctzll(left));
                    if (!before(reader, cell.read[reader], thread)) race("reads and writes", reader, cell.reads, thread, who, byte);
                }
                cell.readers[half] = 0;
            }
            cell.written = now.of[thread % 32], cell.writer = thread, cell.wrote = who;
        }
    }
    // A thread comes to where others of its team come, or of its warp, and has met them there: what
    // each knew is known to all.
    UNSEEN void come(unsigned thread, unsigned group, unsigned meeting)
    {
        if (WATCHED) told[group][meeting % 2][thread] = known[thread];
    }
    UNSEEN void meet(unsigned thread, unsigned mask, unsigned group, unsigned meeting)
    {
        if (!WATCHED) return;
        Known& mine = known[thread];
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned of = 0; of < 32 && (mask >> lane & 1); of++) {
                const uint16_t other = told[group][meeting % 2][thread / 32 * 32 + lane].of[of];
                if (other > mine.of[of]) mine.of[of] = other;
            }
        mine.of[thread % 32]++;
    }
    // It has met all of the block.
    UNSEEN void meet_all(unsigned thread)
    {
        if (!WATCHED) return;
        Known next{known[thread].epoch + 1, {}};
        next.of[thread % 32] = 1;
        known[thread] = next;
    }

  private:
    static constexpr unsigned COUNT = 128, PAGE = 256;
    // How many barriers a thread has passed; and up to when it knows what each thread of its warp
    // did, by that one's clock, or its own.
    struct Known {
        uint32_t epoch;
        uint16_t of[32];
    };
    // Of a byte: when and by whom it was written, or else 0, who has read it since then and when,
    // and the last instructions that did.
    struct Cell {
        uint64_t readers[COUNT / 64];
        const void *wrote, *reads;
        uint32_t epoch;
        uint16_t written, writer, read[COUNT];
    };

    UNSEEN void is(void* begin, size_t size)
    {
        first = reinterpret_cast<uintptr_t>(begin), bytes = size;
        pages.resize(bytes / PAGE + 2);
    }
    // Whether what a thread did at that time comes before what another does now.
    UNSEEN bool before(unsigned thread, uint32_t clock, unsigned now) const
    {
        return thread == now || (thread / 32 == now / 32 && known[now].of[thread % 32] >= clock);
    }
    UNSEEN void race(const char* what, unsigned thread, const void* who, unsigned other, const void* by, uintptr_t byte)
    {
        fprintf(stderr, "a race, thread %u at %p %s thread %u at %p, byte %zu\n", thread, who, what, other, by, size_t(byte));
        _Exit(3);
    }

    uintptr_t first = 0, bytes = 0;
    // What was told is kept for each team of a warp, and the whole warp, until the next meeting but
    // one.
    Known known[COUNT] = {}, told[5][2][COUNT];
    std::vector<std::unique_ptr<Cell[]>> pages;
};
inline thread_local Touched* Touched::current;

#ifdef __SANITIZE_THREAD__
// What the compiler calls.
UNSEEN inline void touched(const void* at, unsigned many, bool writes, const void* who)
{
    if (Touched::current != nullptr) Touched::current->touch(threadIdx.x, at, many, writes, who);
}
#define TOUCHES(bytes)                                                                                                                    \
    UNSEEN void __tsan_read##bytes(void* at) { touched(at, bytes, false, __builtin_return_address(0)); }                                \
    UNSEEN void __tsan_write##bytes(void* at) { touched(at, bytes, true, __builtin_return_address(0)); }                                \
    UNSEEN void __tsan_unaligned_read##bytes(void* at) { touched(at, bytes, false, __builtin_return_address(0)); }                      \
    UNSEEN void __tsan_unaligned_write##bytes(void* at) { touched(at, bytes, true, __builtin_return_address(0)); }
extern "C" {
TOUCHES(1)
TOUCHES(2)
TOUCHES(4)
TOUCHES(8)
TOUCHES(16)
UNSEEN void __tsan_read_range(void* at, unsigned long many) { touched(at, unsigned(many), false, __builtin_return_address(0)); }
UNSEEN void __tsan_write_range(void* at, unsigned long many) { touched(at, unsigned(many), true, __builtin_return_address(0)); }
UNSEEN void __tsan_init() {}
UNSEEN void __tsan_func_entry(void*) {}
UNSEEN void __tsan_func_exit() {}
UNSEEN void __tsan_vptr_update(void**, void*) {}
UNSEEN void __tsan_vptr_read(void**) {}
UNSEEN uint64_t __tsan_atomic64_load(const volatile uint64_t* at, int) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
UNSEEN void __tsan_atomic64_store(volatile uint64_t* at, uint64_t x, int) { __atomic_store_n(at, x, __ATOMIC_RELAXED); }
UNSEEN uint64_t __tsan_atomic64_fetch_add(volatile uint64_t* at, uint64_t x, int) { return __atomic_fetch_add(at, x, __ATOMIC_RELAXED); }
UNSEEN uint32_t __tsan_atomic32_fetch_or(volatile uint32_t* at, uint32_t x, int) { return __atomic_fetch_or(at, x, __ATOMIC_RELAXED); }
}
#endif
