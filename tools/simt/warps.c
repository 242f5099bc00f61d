// Runs the threads of CUDA blocks as fibers of one CPU thread, so that lanes of a warp can meet in
// __shfl_sync and its like. A fiber runs until it waits for other lanes, yields or ends.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LANES = 32, STACK = 1 << 20, SHARED = 16, MOST_RUNS = 1 << 28 };
enum { READY, WAITING, DONE };

typedef struct Block {
    const void* keys[SHARED];
    void* arrays[SHARED];
    size_t bytes;
} Block;

typedef struct Fiber {
    void* stack_pointer;
    char* stack;
    int state, lane;
    size_t thread;  // of the grid
    unsigned thread_of_block, mask;
    const void* site;
    uint64_t value, values[LANES];
    uint64_t all[LANES];  // of a first lane: values of the last meeting of its whole warp
    const uint64_t* seen;  // the values of all lanes
    Block* block;
    struct Fiber* warp;  // its first lane
} Fiber;

typedef void (*Kernel)(void* bounds, void* arguments);

static __thread Fiber* current;
static void* scheduler_stack;
static Kernel kernel;
static void *kernel_bounds, *kernel_arguments;
static uint64_t random_state = 88172645463325252ull;
static int shuffles;
static char message[512];

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

__attribute__((naked, noinline)) static void swap_stacks(void** from, void* to) {
    __asm__("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
            "movq %rsp, (%rdi); movq %rsi, %rsp;"
            "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret;");
}

static void leave(void) { swap_stacks(&current->stack_pointer, scheduler_stack); }

static void begin(void) {
    kernel(kernel_bounds, kernel_arguments);
    current->state = DONE;
    leave();
}

static void complain(const char* what, const Fiber* f) {
    if (!message[0])
        snprintf(message, sizeof message, "%s: thread %zu, lane %d, at %s (mask %08x)", what,
                 f->thread, f->lane, f->site ? (const char*)f->site : "-", f->mask);
}

// Let lanes go on that wait for each other, once all lanes of their mask have come or ended.
static void meet(Fiber* f) {
    Fiber* warp = f->warp;
    unsigned here = 0;
    for (int k = LANES - 1; k >= 0; --k) {
        const Fiber* other = warp + k;
        if (!(f->mask >> k & 1) || other->state == DONE) continue;
        if (other->state != WAITING || other->mask != f->mask || other->site != f->site) return;
        here |= 1u << k;
    }
    if (here != f->mask) complain("lanes of the mask have ended", f);
    // Of all lanes none comes to the next meeting before it has read these values; of some it may.
    const int every = here == 0xffffffffu;
    for (int k = 0; k < LANES; ++k) {
        if (!(here >> k & 1)) continue;
        uint64_t* values = every ? warp->all : warp[k].values;
        if (!every || k == 0)
            for (int m = 0; m < LANES; ++m) values[m] = here >> m & 1 ? warp[m].value : 0;
        warp[k].seen = values;
    }
    for (int k = 0; k < LANES; ++k)
        if (here >> k & 1) warp[k].state = READY;
}

static int inside(void) { return current != 0; }
static int lane(void) { return current->lane; }
static unsigned thread_of_block(void) { return current->thread_of_block; }
static size_t first_task(void) { return current ? current->thread : 0; }
static size_t last_task(size_t size) { return current ? current->thread + 1 : size; }

static const uint64_t* gather(const char* site, unsigned mask, uint64_t value) {
    Fiber* f = current;
    if (!(mask >> f->lane & 1)) complain("the mask lacks the calling lane", f);
    f->site = site, f->mask = mask, f->value = value, f->state = WAITING;
    meet(f);
    leave();
    return f->seen;
}

static void yield(void) {
    if (current && shuffles && next_random() % 4 == 0) leave();
}

static void bad_index(const char* where, long index, long size) {
    if (!message[0])
        snprintf(message, sizeof message, "index %ld of %ld in %s: thread %zu", index, size, where,
                 current->thread);
}

static void* shared(const void* key, size_t bytes) {
    Block* block = current->block;
    for (int k = 0; k < SHARED; ++k) {
        if (block->keys[k] == key) return block->arrays[k];
        if (block->keys[k]) continue;
        block->keys[k] = key, block->bytes += bytes;
        block->arrays[k] = malloc(bytes);
        memset(block->arrays[k], 0xcd, bytes);  // shared memory begins with anything
        return block->arrays[k];
    }
    abort();
}

static void start(Fiber* f) {
    void** top = (void**)(f->stack + STACK);
    *--top = 0;  // the stack of a function that was called is off by 8 bytes from 16
    *--top = (void*)begin;
    for (int k = 0; k < 6; ++k) *--top = 0;
    f->stack_pointer = top;
}

// Run fibers [0, count) to their end; false if the rest wait for ever.
static int run_fibers(Fiber* fibers, size_t count, unsigned* order) {
    size_t left = 0, runs = 0;
    for (size_t i = 0; i < count; ++i) order[i] = i, left += fibers[i].state != DONE;
    while (left) {
        int moved = 0;
        if (shuffles)
            for (size_t i = count - 1; i > 0; --i) {
                const size_t j = next_random() % (i + 1);
                const unsigned t = order[i];
                order[i] = order[j], order[j] = t;
            }
        for (size_t i = 0; i < count; ++i) {
            Fiber* f = fibers + order[i];
            if (f->state != READY) continue;
            if (++runs > MOST_RUNS) return complain("the launch does not end", f), 0;
            current = f;
            swap_stacks(&scheduler_stack, f->stack_pointer);
            current = 0;
            moved = 1;
            if (f->state != DONE) continue;
            --left;
            for (int k = 0; k < LANES; ++k)
                if (f->warp[k].state == WAITING) meet(f->warp + k);
        }
        if (!moved) {
            for (size_t i = 0; i < count; ++i)
                if (fibers[i].state == WAITING) complain("lanes wait for ever", fibers + i);
            return 0;
        }
    }
    return 1;
}

// Launch a kernel over ``threads``; of ``resident`` threads the blocks run at once. Returns a
// message, empty if all went well.
const char* simt_launch(Kernel forward, void* bounds, void* arguments, size_t threads,
                        size_t block_size, size_t resident, int shuffle, uint64_t seed) {
    static Fiber* fibers;
    static Block* blocks;
    static unsigned* order;
    static size_t room;
    if (resident < block_size) resident = block_size;
    resident = resident / block_size * block_size;
    if (resident > room) {
        fibers = realloc(fibers, resident * sizeof *fibers);
        blocks = realloc(blocks, resident * sizeof *blocks);
        order = realloc(order, resident * sizeof *order);
        for (; room < resident; ++room)
            fibers[room].stack = mmap(0, STACK, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    kernel = forward, kernel_bounds = bounds, kernel_arguments = arguments;
    shuffles = shuffle, message[0] = 0;
    random_state = seed * 2 + 88172645463325253ull;
    const size_t grid = (threads + block_size - 1) / block_size * block_size;
    for (size_t first = 0; first < grid; first += resident) {
        const size_t count = grid - first < resident ? grid - first : resident;
        for (size_t i = 0; i < count; ++i) {
            Fiber* f = fibers + i;
            f->thread = first + i, f->thread_of_block = i % block_size;
            f->lane = f->thread_of_block % LANES, f->warp = f - f->lane;
            f->state = f->thread < threads ? READY : DONE;
            f->block = blocks + i / block_size, f->site = 0, f->mask = 0;
            start(f);
        }
        memset(blocks, 0, count / block_size * sizeof *blocks);
        const int ended = run_fibers(fibers, count, order);
        for (size_t b = 0; b < count / block_size; ++b) {
            if (blocks[b].bytes > 48 * 1024 && !message[0])
                snprintf(message, sizeof message, "%zu bytes of shared memory", blocks[b].bytes);
            for (int k = 0; k < SHARED; ++k) free(blocks[b].arrays[k]);
        }
        if (!ended) break;
    }
    return message;
}

// Kernels find these functions at a fixed address, so that their code can be cached.
int simt_publish(void) {
    void** table = mmap((void*)0x510000000000, 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (table != (void*)0x510000000000) return 0;
    void* functions[] = {inside, lane, thread_of_block, first_task, last_task, gather, yield, shared,
                         bad_index};
    memcpy(table, functions, sizeof functions);
    return 1;
}
