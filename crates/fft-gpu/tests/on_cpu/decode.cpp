// Numbers out of messages, by the kernels of decode.cu.
#include "pipe.hpp"

#include "../../kernels/src/decode.cu"

template <class T>
static void serve(const Told& told, void (*const (&decoders)[WIRES])(Job<T>), void (*turned)(Job<T>), void (*measurer)(Job<T>))
{
    const Items<Message> all(told.items, told.tiles);
    const auto lengths = take<u64>(told.items);
    const auto messages = take<uint4>((told.source + 15) / 16);
    std::vector<State> states(told.items + 1);
    // Of another launch, as on a device, but for the first.
    std::vector<u64> begins(told.tiles + 1, 1), queue(told.tiles + 1);
    std::vector<Series> series(told.tiles / SERIES + told.items + 1);
    begins[0] = 0;
    Room dst(told.room);
    const u8* bytes = reinterpret_cast<const u8*>(messages.data());
    const u32 blocks = u32(told.blocks), seed = u32(told.seed);
    Job<T> job{};
    job.batch = all.batch();
    job.messages = bytes;
    job.dst = reinterpret_cast<T*>(dst.begin());
    job.states = states.data();
    job.lengths = lengths.data();
    job.bits = u32(told.bits);
    job.begins = begins.data();
    job.queue = {queue.data(), series.data()};
    // As `Decoder::new` chooses.
    bool turns = false;
    for (u64 i = 0; i < told.items; i++) turns |= told.wire == TOLERANCE && all.items[i].box.log_rows > 0;
    std::vector<Group> groups(turns ? told.tiles * (TILE_BYTES / BLOCK / sizeof(T) / told.width) : 0, Group{~0u});
    job.groups = groups.data();
    if (told.wire == TOLERANCE && told.tiles > 0) launch(measurer, blocks, seed, job);
    if (told.tiles > 0) launch(turns ? turned : decoders[told.wire], blocks, seed, job);
    dst.send();
    fwrite(states.data(), sizeof(State), told.items, stdout);
}

#define F32_OF(real) decode_f32_##real
#define SERVE(real, T, SINGLE)                                                                       \
    serve<T>(told, {decode_bits_##real, decode_tolerance_##real, SINGLE}, decode_turned_##real, measure_##real)

int main()
{
    for (Told told; begin(told); end()) {
        SERVE_KIND;
    }
}
