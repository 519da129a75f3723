/* thriffty in the place of heFFTe 2.4: boxes of indices. MIT OR Apache-2.0. */
#ifndef THRIFFTY_HEFFTE_GEOMETRY_H
#define THRIFFTY_HEFFTE_GEOMETRY_H

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <ostream>
#include <vector>

#include "heffte_utils.h"

namespace heffte {

/**
 * A box of indices: both bounds are inclusive, and `order` has the dimensions of memory, the
 * contiguous one first. It is empty if a lower bound is above the upper one.
 */
template <typename index = int>
struct box3d {
    box3d(std::array<index, 3> clow, std::array<index, 3> chigh) : box3d(clow, chigh, {{0, 1, 2}}) {}

    box3d(std::array<index, 3> clow, std::array<index, 3> chigh, std::array<int, 3> corder)
        : low(clow), high(chigh), size(sizes(clow, chigh)), order(corder) {}

    /** A box of two dimensions: the third has index 0 alone. */
    box3d(std::array<index, 2> clow, std::array<index, 2> chigh) : box3d(clow, chigh, {{0, 1}}) {}

    box3d(std::array<index, 2> clow, std::array<index, 2> chigh, std::array<int, 2> corder)
        : box3d({{clow[0], clow[1], 0}}, {{chigh[0], chigh[1], 0}}, {{corder[0], corder[1], 2}}) {}

    bool empty() const { return size[0] <= 0 || size[1] <= 0 || size[2] <= 0; }

    /** The number of points. */
    long long count() const {
        return empty() ? 0
                       : static_cast<long long>(size[0]) * static_cast<long long>(size[1]) *
                             static_cast<long long>(size[2]);
    }

    /** The box of half a spectrum along a dimension. */
    box3d r2c(int dimension) const {
        if (empty() || dimension < 0 || dimension > 2) return *this;
        std::array<index, 3> last = high;
        last[dimension] = low[dimension] + size[dimension] / 2;
        return box3d(low, last, order);
    }

    bool is2d() const { return size[2] == 1; }

    /** Whether the bounds are the same. */
    bool operator==(box3d const &other) const { return low == other.low && high == other.high; }
    bool operator!=(box3d const &other) const { return !(*this == other); }

    bool ordered_same_as(box3d const &other) const { return order == other.order; }

    /** The points that are in both. */
    box3d collide(box3d const &other) const {
        std::array<index, 3> first, last;
        for (int d = 0; d < 3; d++) {
            first[d] = std::max(low[d], other.low[d]);
            last[d] = std::min(high[d], other.high[d]);
        }
        return box3d(first, last, order);
    }

    /** Points along the dimension that is number `place` in memory. */
    index osize(int place) const { return size[order[place]]; }

    /** The place of a dimension in memory. */
    int find_order(int dimension) const {
        for (int place = 0; place < 3; place++)
            if (order[place] == dimension) return place;
        return -1;
    }

    std::array<index, 3> low, high, size;
    std::array<int, 3> order;

private:
    static std::array<index, 3> sizes(std::array<index, 3> const &low, std::array<index, 3> const &high) {
        std::array<index, 3> size;
        for (int d = 0; d < 3; d++) size[d] = high[d] - low[d] + 1;
        return size;
    }
};

template <typename index = int>
using box2d = box3d<index>;

template <typename index>
std::ostream &operator<<(std::ostream &out, box3d<index> const &box) {
    for (int d = 0; d < 3; d++) out << (d == 0 ? "" : "\t") << box.low[d] << "\t" << box.high[d];
    return out << "\t(" << box.order[0] << ", " << box.order[1] << ", " << box.order[2] << ")";
}

/** The smallest box around all that are not empty. */
template <typename index>
box3d<index> find_world(std::vector<box3d<index>> const &boxes) {
    std::array<index, 3> low{{0, 0, 0}}, high{{-1, -1, -1}};
    bool first = true;
    for (box3d<index> const &box : boxes) {
        if (box.empty()) continue;
        for (int d = 0; d < 3; d++) {
            low[d] = first ? box.low[d] : std::min(low[d], box.low[d]);
            high[d] = first ? box.high[d] : std::max(high[d], box.high[d]);
        }
        first = false;
    }
    return box3d<index>(low, high);
}

/**
 * Whether each point of the world is in one box.
 *
 * Count the boxes of each point, and take differences of this count along each dimension: a box
 * leaves 1 or -1 at each of its eight corners, and 0 elsewhere. Sums of differences give the count
 * back. So the count is that of the world if and only if these numbers are.
 */
template <typename index>
bool world_complete(std::vector<box3d<index>> const &boxes, box3d<index> const world) {
    std::map<std::array<index, 3>, int> corners;
    auto add = [&](box3d<index> const &box, int sign) {
        for (int corner = 0; corner < 8 && !box.empty(); corner++) {
            std::array<index, 3> at = box.low;
            int weight = sign;
            for (int d = 0; d < 3; d++)
                if ((corner >> d & 1) != 0) {
                    at[d] = box.high[d] + 1;
                    weight = -weight;
                }
            corners[at] += weight;
        }
    };
    for (box3d<index> const &box : boxes) add(box, 1);
    add(world, -1);
    return std::all_of(corners.begin(), corners.end(),
                       [](std::pair<std::array<index, 3> const, int> const &corner) { return corner.second == 0; });
}

/**
 * Cuts a box as evenly as possible, one part per rank of the grid; rank 1 is the neighbour of
 * rank 0 along dimension 0.
 */
template <typename index>
std::vector<box3d<index>> split_world(box3d<index> const world, std::array<int, 3> const proc_grid) {
    auto begin = [&](int d, int part) {
        index const each = world.size[d] / proc_grid[d], rest = world.size[d] % proc_grid[d];
        return static_cast<index>(world.low[d] + part * each + std::min(static_cast<index>(part), rest));
    };
    std::vector<box3d<index>> parts;
    std::array<int, 3> at;
    for (at[2] = 0; at[2] < proc_grid[2]; at[2]++)
        for (at[1] = 0; at[1] < proc_grid[1]; at[1]++)
            for (at[0] = 0; at[0] < proc_grid[0]; at[0]++) {
                std::array<index, 3> low, high;
                for (int d = 0; d < 3; d++) {
                    low[d] = begin(d, at[d]);
                    high[d] = begin(d, at[d] + 1) - 1;
                }
                parts.push_back(box3d<index>(low, high, world.order));
            }
    return parts;
}

/** The most even two factors, the larger one last. */
inline std::array<int, 2> make_procgrid(int const num_procs) {
    std::array<int, 2> grid{{1, num_procs}};
    for (int factor = 1; factor * factor <= num_procs; factor++)
        if (num_procs % factor == 0) grid = {{factor, num_procs / factor}};
    return grid;
}

/** The three factors that cut a box into parts with the least surface. */
template <typename index>
std::array<int, 3> proc_setup_min_surface(box3d<index> const world, int num_procs) {
    std::array<int, 3> best{{1, 1, num_procs}};
    double least = std::numeric_limits<double>::max();
    for (int i = 1; i <= num_procs; i++) {
        if (num_procs % i != 0) continue;
        for (int j = 1; j <= num_procs / i; j++) {
            if (num_procs / i % j != 0) continue;
            std::array<int, 3> const grid{{i, j, num_procs / i / j}};
            std::array<double, 3> side;
            for (int d = 0; d < 3; d++) side[d] = static_cast<double>(world.size[d]) / grid[d];
            double const surface = side[0] * side[1] + side[1] * side[2] + side[2] * side[0];
            if (surface < least) {
                least = surface;
                best = grid;
            }
        }
    }
    return best;
}

} // namespace heffte

#endif
