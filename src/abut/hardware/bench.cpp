// Host and memories around the machine, as in pysim.py, for a model made by Verilator.
// Reads one program (words of 32 bits, see verilate.py) and prints counters and pairs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

using Words = std::vector<uint32_t>;

static Words input;
static size_t at = 0;

static uint32_t next() {
    if (at >= input.size()) { std::fprintf(stderr, "the program is cut short\n"); std::exit(2); }
    return input[at++];
}
static Words next(size_t count) {
    Words out(count);
    for (auto& word : out) word = next();
    return out;
}

static void put(CData& port, const uint32_t* words) { port = words[0]; }
static void put(SData& port, const uint32_t* words) { port = words[0]; }
static void put(IData& port, const uint32_t* words) { port = words[0]; }
static void put(QData& port, const uint32_t* words) { port = words[0] | (uint64_t)words[1] << 32; }
template <std::size_t N> static void put(VlWide<N>& port, const uint32_t* words) {
    for (std::size_t i = 0; i < N; ++i) port[i] = words[i];
}

struct Request { uint64_t time; uint32_t beats; const uint32_t* words; bool is_face; };

struct Memory {  // a port: requests are answered in order, in bursts
    uint32_t latency, gap, burst_beats;
    std::deque<Request> requests;
    uint32_t beat = 0;
    uint64_t next_beat = 0;

    bool ready() const {  // for a record
        size_t records = 0;
        for (const auto& request : requests) records += !request.is_face;
        return records < 2;
    }
    bool valid(uint64_t cycle) const {
        return !requests.empty() && cycle >= requests[0].time && cycle >= next_beat;
    }
    void ask(uint64_t cycle, uint32_t beats, const uint32_t* words, bool is_face) {
        requests.push_back({cycle + latency, beats, words, is_face});
    }
    void take(uint64_t cycle) {
        ++beat;
        next_beat = cycle + 1;
        if (beat == requests[0].beats) {
            beat = 0;
            requests.pop_front();
        } else if (beat % burst_beats == 0) {
            next_beat += gap;
        }
    }
};

static void tick(Vtop& top) {
    top.clk = 1;
    top.eval();
    top.clk = 0;
    top.eval();
}

int main(int argc, char** argv) {
    FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
    if (!file) { std::fprintf(stderr, "usage: Vtop PROGRAM\n"); return 2; }
    for (uint32_t word; std::fread(&word, 4, 1, file) == 1;) input.push_back(word);
    std::fclose(file);

    Memory memory;
    memory.latency = next(); memory.gap = next();
    const uint32_t beats = next(); memory.burst_beats = next();
    const uint32_t face_beats = next(), beat_words = next(), face_words = next();
    const uint32_t rows = next(), row_words = next();
    Memory face_memory = memory;  // of the wide bus
    uint32_t slots[2], faces[2];
    for (auto& count : slots) count = next();
    for (auto& count : faces) count = next();

    Vtop top;
    top.clk = 0; top.rst = 1; top.eval();
    tick(top); tick(top);
    top.rst = 0;
    top.root_a = next(); top.root_b = next(); top.slack = next();
    put(top.turn, next(6).data());
    put(top.shift, next(4).data());
    top.table_write = 1;
    for (uint32_t n = 0; n < rows; ++n) {
        top.table_lane = next(); top.table_row = next();
        put(top.table_data, next(row_words).data());
        tick(top);
    }
    top.table_write = 0;
    Words trees[2], triangles[2];
    for (int side = 0; side < 2; ++side)
        trees[side] = next((size_t)slots[side] * beats * beat_words);
    for (int side = 0; side < 2; ++side) triangles[side] = next((size_t)faces[side] * face_beats * face_words);

    top.result_ready = 1;
    top.go = 1;
    tick(top);
    top.go = 0;
    top.eval();
    const auto record = [&](bool b, size_t slot) { return &trees[b][slot * beats * beat_words]; };
    const auto triangle = [&](bool b, size_t face) {
        return &triangles[b][face * face_beats * face_words];
    };
    for (uint64_t cycle = 0; top.running; ++cycle) {
        const bool ready = memory.ready(), valid = memory.valid(cycle);
        top.ask_ready = ready;
        top.beat = valid;
        if (valid) {
            const Request& front = memory.requests[0];
            put(top.beat_data,
                front.words + (size_t)memory.beat * (front.is_face ? face_words : beat_words));
        }
#if SHARED_BUS
        top.beat_face = valid && memory.requests[0].is_face;
        top.eval();
        const bool ask_face = top.ask_face;
#else
        const bool face_valid = face_memory.valid(cycle), ask_face = false;
        top.triangle_valid = face_valid;
        if (face_valid) {
            put(top.triangle, face_memory.requests[0].words);
            face_memory.take(cycle);
        }
        top.eval();
        if (top.face_ask)
            face_memory.ask(cycle, 1, triangle(top.face_ask_b, top.face), true);
#endif
        if (valid && top.beat_ready) memory.take(cycle);
        if (top.ask && ask_face)
            memory.ask(cycle, face_beats, triangle(top.ask_b, top.ask_slot), true);
        else if (top.ask && ready)
            memory.ask(cycle, beats, record(top.ask_b, top.ask_slot), false);
        if (top.result_valid) {
            const uint64_t pair = top.result;
            std::printf("pair %u %u\n", (unsigned)(pair & 0xFFFFFF), (unsigned)(pair >> 24 & 0xFFFFFF));
        }
        tick(top);
    }
    std::printf("overflow %u\ncycles %u\ndop_tests %u\naxis_tests %u\nleaf_pairs %u\nrecords %u\n",
                (unsigned)top.overflow, top.cycles, top.dop_tests, top.axis_tests, top.leaf_pairs,
                top.records);
    return 0;
}
