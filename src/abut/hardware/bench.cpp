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

struct Memory {  // records in bursts
    uint32_t latency, gap, beats, burst_beats;
    std::deque<uint64_t> times;
    std::deque<const uint32_t*> records;
    uint32_t beat = 0;
    uint64_t next_beat = 0;

    bool ready() const { return times.size() < 2; }
    bool valid(uint64_t cycle) const {
        return !times.empty() && cycle >= times[0] && cycle >= next_beat;
    }
    void take(uint64_t cycle) {
        ++beat;
        next_beat = cycle + 1;
        if (beat == beats) {
            beat = 0;
            times.pop_front();
            records.pop_front();
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
    memory.beats = next(); memory.burst_beats = next();
    const uint32_t beat_words = next(), rows = next(), row_words = next();
    const uint32_t slots[2] = {next(), 0}; const_cast<uint32_t&>(slots[1]) = next();
    const uint32_t faces[2] = {next(), 0}; const_cast<uint32_t&>(faces[1]) = next();

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
        trees[side] = next((size_t)slots[side] * memory.beats * beat_words);
    for (int side = 0; side < 2; ++side) triangles[side] = next((size_t)faces[side] * 6);

    top.result_ready = 1;
    top.go = 1;
    tick(top);
    top.go = 0;
    top.eval();
    std::deque<std::pair<uint64_t, const uint32_t*>> asked;
    for (uint64_t cycle = 0; top.running; ++cycle) {
        const bool ready = memory.ready(), valid = memory.valid(cycle);
        top.ask_ready = ready;
        top.beat = valid;
        if (valid) put(top.beat_data, memory.records[0] + memory.beat * beat_words);
        top.triangle_valid = !asked.empty() && asked[0].first == cycle;
        if (top.triangle_valid) {
            put(top.triangle, asked[0].second);
            asked.pop_front();
        }
        top.eval();
        if (valid && top.beat_ready) memory.take(cycle);
        if (top.ask && ready) {
            memory.records.push_back(
                &trees[top.ask_b][(size_t)top.ask_slot * memory.beats * beat_words]);
            memory.times.push_back(cycle + memory.latency);
        }
        if (top.face_ask)
            asked.push_back({cycle + memory.latency, &triangles[top.face_ask_b][(size_t)top.face * 6]});
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
