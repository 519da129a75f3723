// Blocks of kernels on a CPU: each is a thread of the operating system, and its threads are
// contexts that take turns, by chance.
#pragma once

#include <link.h>
#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "cuda.hpp"
#include "races.hpp"

inline void fail(const char* why)
{
    fprintf(stderr, "%s\n", why);
    _Exit(1);
}

class Block {
  public:
    // The bytes that are the stacks of all threads.
    static constexpr unsigned COUNT = 128, STACK = 256 << 10, STACKS = COUNT * STACK;

    // Runs 128 threads of a kernel to their end.
    template <class Kernel> UNSEEN Block(unsigned seed, Kernel kernel, char* stacks) : chance(seed), threads(COUNT), stacks(stacks)
    {
        current = this;
        run = [](void* kernel) { (*static_cast<Kernel*>(kernel))(); };
        argument = &kernel;
        getcontext(&first);
        for (unsigned left = COUNT, idle = 0, round = 0; left > 0; round++) {
            // For a while some warps rest, so that others run far ahead.
            if (round % 32 == 0) resting = chance();
            const uint64_t before = meetings;
            left = 0;
            for (unsigned i = 0, first = chance(); i < COUNT; i++) {
                Thread& thread = threads[threadIdx.x = (first + i * 5) % COUNT];
                if (thread.done) continue;
                left++;
                if (thread.at != nullptr && thread.at->number == thread.number) continue;
                if (resting >> threadIdx.x / 32 & 1 || chance() % 8 == 0) continue;
                go_on(thread);
            }
            idle = meetings == before ? idle + 1 : 0;
            if (idle > 64) std::this_thread::yield();
            if (idle > 1 << 20) fail("threads wait for each other");
        }
    }

    static thread_local Block* current;

    void yield()
    {
        if (_setjmp(threads[threadIdx.x].place) == 0) _longjmp(outside, 1);
    }
    // `SYNC` says that what they touched comes before what any of them touches from now on.
    template <bool SYNC> const uint64_t* meet(unsigned mask, uint64_t brought)
    {
        const unsigned lane = threadIdx.x % 32;
        if ((mask >> lane & 1) == 0) fail("a thread meets others, but is not one of them");
        // Teams of eight threads, or whole warps.
        const unsigned group = mask == ~0u ? 4 : __builtin_ctz(mask) / 8;
        if (group < 4 && mask != 0xFFu << 8 * group) fail("threads that are no team meet");
        Meeting& meeting = warps[threadIdx.x / 32][group];
        const unsigned number = meeting.number;
        meeting.brought[number % 2][lane] = brought;
        if (SYNC) touched.come(threadIdx.x, group, number);
        wait(meeting, unsigned(__builtin_popcount(mask)));
        if (SYNC) touched.meet(threadIdx.x, mask, group, number);
        return meeting.brought[number % 2];
    }
    unsigned meet_all(bool brought)
    {
        const unsigned number = all.number % 2;
        if (all.come == 0) all.brought[number][0] = 0;
        all.brought[number][0] += brought;
        wait(all, COUNT);
        touched.meet_all(threadIdx.x);
        return unsigned(all.brought[number][0]);
    }
    void begin_copy(void* to, const void* from, unsigned bytes, bool there, const void* who)
    {
        const uintptr_t places = reinterpret_cast<uintptr_t>(to) | (there ? reinterpret_cast<uintptr_t>(from) : 0);
        if (places % bytes != 0) fail("a copy is not aligned");
        threads[threadIdx.x].copies.push_back({to, from, bytes, there, who});
        touched.touch(threadIdx.x, to, bytes, true, who);
        memset(to, 0xEE, bytes);
    }
    void end_copies()
    {
        for (const Copy& copy : threads[threadIdx.x].copies) {
            if (copy.there) memcpy(copy.to, copy.from, copy.bytes);
            else memset(copy.to, 0, copy.bytes);
            touched.touch(threadIdx.x, copy.to, copy.bytes, true, copy.who);
        }
        threads[threadIdx.x].copies.clear();
        yield();
    }

  private:
    struct Copy {
        void* to;
        const void* from;
        unsigned bytes;
        bool there;
        const void* who;
    };
    // What is brought to a meeting is kept until the next but one: nobody comes there before all
    // have left.
    struct Meeting {
        unsigned come = 0, number = 0;
        uint64_t brought[2][32];
    };
    struct Thread {
        jmp_buf place;
        std::vector<Copy> copies;
        // Where it waits until the meeting of this number is over.
        const Meeting* at = nullptr;
        unsigned number;
        bool begun = false, done = false;
    };

    // Returns when the thread yields. Its first turn alone is a context of ucontext.h: each change
    // to one of these asks the system for the mask of signals, which takes longer than most turns.
    UNSEEN void go_on(Thread& thread)
    {
        if (_setjmp(outside) != 0) return;
        if (thread.begun) _longjmp(thread.place, 1);
        thread.begun = true;
        first.uc_stack.ss_sp = stacks + threadIdx.x * STACK;
        first.uc_stack.ss_size = STACK;
        first.uc_link = nullptr;
        makecontext(&first, whole, 0);
        setcontext(&first);
    }

    // What each thread does.
    static void whole()
    {
        current->run(current->argument);
        Thread& thread = current->threads[threadIdx.x];
        if (!thread.copies.empty()) fail("a thread ends before its copies");
        thread.done = true;
        ::yield();
    }

    void wait(Meeting& meeting, unsigned many)
    {
        if (++meeting.come == many) {
            meeting.come = 0;
            meeting.number++;
            meetings++;
            if (chance() % 2) yield();
            return;
        }
        Thread& thread = threads[threadIdx.x];
        thread.at = &meeting;
        thread.number = meeting.number;
        yield();
    }

    std::mt19937 chance;
    Touched touched;
    std::vector<Thread> threads;
    Meeting warps[4][5], all;
    jmp_buf outside;
    ucontext_t first;
    char* stacks;
    void (*run)(void*);
    void* argument;
    unsigned resting = 0;
    uint64_t meetings = 0;
};
inline thread_local Block* Block::current;

inline void yield() { Block::current->yield(); }
inline void yield_to_blocks()
{
    std::this_thread::yield();
    yield();
}
inline const uint64_t* meet(unsigned mask, uint64_t brought) { return Block::current->meet<false>(mask, brought); }
inline void sync(unsigned mask) { Block::current->meet<true>(mask, 0); }
inline unsigned meet_block(bool brought) { return Block::current->meet_all(brought); }
inline void begin_copy(void* to, const void* from, unsigned bytes, bool there)
{
    Block::current->begin_copy(to, from, bytes, there, __builtin_return_address(0));
}
inline void end_copies() { Block::current->end_copies(); }

// Shared memory holds anything at first: what is `thread_local` in the program is filled.
UNSEEN inline void fill_shared()
{
    auto fill = [](dl_phdr_info* program, size_t, void*) UNSEEN {
        for (unsigned i = 0; i < program->dlpi_phnum; i++)
            if (program->dlpi_phdr[i].p_type == PT_TLS) memset(program->dlpi_tls_data, 0xEE, program->dlpi_phdr[i].p_memsz);
        // The first is the program itself.
        return 1;
    };
    dl_iterate_phdr(fill, nullptr);
    Touched::current = nullptr;
}

// Stacks of the blocks that run at once. Later blocks use them again, as new memory costs the
// system more than a short kernel takes.
inline std::unique_ptr<char[]> stacks[8];

// Runs so many blocks of a kernel, up to eight at once.
template <class Kernel> void launch_all(Kernel kernel, unsigned blocks, unsigned seed)
{
    gridDim.x = blocks;
    for (unsigned first = 0; first < blocks; first += 8) {
        std::vector<std::thread> running;
        for (unsigned number = first; number < blocks && number < first + 8; number++) {
            auto& own = stacks[number - first];
            if (!own) own.reset(new char[Block::STACKS]);
            running.emplace_back([&, number] {
                fill_shared();
                blockIdx.x = number;
                Block(seed * 64 + number, kernel, own.get());
            });
        }
        for (std::thread& block : running) block.join();
    }
}
template <class Job> void launch(void (*kernel)(Job), unsigned blocks, unsigned seed, const Job& job)
{
    launch_all([&] { kernel(job); }, blocks, seed);
}
