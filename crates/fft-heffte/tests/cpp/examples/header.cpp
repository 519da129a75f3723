/* heffte.h alone brings what programs of heFFTe use of the standard library. Its transforms can be
 * moved and not copied. */
#include "heffte.h"

template <typename T>
constexpr bool moves_only() {
    return std::is_move_constructible<T>::value && std::is_move_assignable<T>::value &&
           !std::is_copy_constructible<T>::value && !std::is_copy_assignable<T>::value;
}

template <typename backend>
constexpr bool all_move_only() {
    return moves_only<heffte::fft3d<backend>>() && moves_only<heffte::fft3d_r2c<backend>>() &&
           moves_only<heffte::fft2d<backend, long long>>() && moves_only<heffte::fft2d_r2c<backend, long long>>();
}

static_assert(all_move_only<heffte::backend::stock>() && all_move_only<heffte::backend::fftw>() &&
                  all_move_only<heffte::backend::mkl>() && moves_only<heffte::rtransform<heffte::backend::fftw_sin>>(),
              "a transform that can be copied, or cannot be moved");

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    std::mt19937 generator(7);
    std::uniform_int_distribution<int> digit(0, 9);
    std::deque<int> queue;
    std::generate_n(std::back_inserter(queue), 100, [&] { return digit(generator); });
    std::map<int, int> counts;
    for (int const found : queue) counts[found]++;
    std::set<int> const digits(queue.begin(), queue.end());
    std::list<int> const sorted(digits.begin(), digits.end());
    std::array<char, 4> text;
    std::memcpy(text.data(), "ten", text.size());
    std::ostringstream line;
    line << text.data() << " " << std::setw(6) << std::setprecision(3) << std::fixed << std::abs(std::complex<double>(3, 4));
    std::function<int(int, int)> const add = std::plus<int>();
    int const total = std::accumulate(queue.begin(), queue.end(), 0, add);
    int weighted = 0;
    for (auto const &count : counts) weighted += count.first * count.second;
    std::ofstream nowhere;
    std::unique_ptr<int> const one(new int(1));
    bool const right = line.str() == "ten  5.000" && total == weighted && counts.size() == sorted.size() && !nowhere.is_open() &&
                       *one == 1 && std::sqrt(4.0) == 2.0;
    if (!right) std::cerr << "the standard library: " << line.str() << std::endl;
    MPI_Finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
