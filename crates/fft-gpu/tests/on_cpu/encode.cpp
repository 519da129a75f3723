// Messages, by the kernels of encode.cu and settle.cu.
#include "pipe.hpp"

#include "../../kernels/src/encode.cu"
#include "../../kernels/src/settle.cu"

template <class T>
static void serve(const Told& told, void (*const (&encoders)[WIRES])(Job<T>), void (*settler)(Job<T>))
{
    const Items<Message> all(told.items, told.tiles);
    const auto source = take<uint4>((told.source + 15) / 16);
    std::vector<State> states(told.items + 1);
    // Of another launch, as on a device.
    std::vector<double> errors(told.tiles + 1, NAN);
    std::vector<u64> queue(told.tiles + 1);
    std::vector<Series> series(told.tiles / SERIES + told.items + 1);
    Room messages(told.room);
    const T* src = reinterpret_cast<const T*>(source.data());
    const u32 blocks = u32(told.blocks), seed = u32(told.seed), bits = u32(told.bits);
    const double part = told.part, step = told.step;
    const Job<T> job{all.batch(), src, messages.begin(), states.data(), errors.data(), bits, u32(told.raw), part, step, 1 / step, {queue.data(), series.data()}};
    // At a fixed rate states are as the launch before has left them.
    const bool varies = told.wire == TOLERANCE;
    const u32 again = !varies && told.seed % 3 == 0 ? 2 : 1;
    for (u32 n = 0; n < again; n++) {
        if (told.raw != ALL_RAW && told.tiles > 0) launch(encoders[told.wire], blocks, seed, job);
        launch(settler, blocks, seed, job);
    }
    if (states[told.items].bytes != 0) fail("the next launch would not begin with the first tile");
    for (const State& state : states)
        if (!varies && (state.units != 0 || state.raw != 0 || state.bad != 0)) fail("the next launch would not find zeros");
    messages.send();
    fwrite(states.data(), sizeof(State), told.items, stdout);
}

#define F32_OF(real) encode_f32_##real
#define SERVE(real, T, SINGLE) serve<T>(told, {encode_bits_##real, encode_tolerance_##real, SINGLE}, settle_##real)

int main()
{
    for (Told told; begin(told); end()) {
        SERVE_KIND;
    }
}
