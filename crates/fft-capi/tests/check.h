/* What the C tests share: a status or a truth that ends the program if it is not as expected, and
 * options. */
#include <stdio.h>
#include <string.h>

#include <thriffty.h>

static int rank, ranks;

/* A call came to this status, and says why if it failed. */
static void expect_(int line, thriffty_status found, thriffty_status expected) {
    if (found != expected || (found != THRIFFTY_STATUS_OK && strlen(thriffty_last_error()) < 5)) {
        fprintf(stderr, "line %d: rank %d has status %d, expected %d: %s\n", line, rank, (int)found, (int)expected,
                thriffty_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define expect(found, expected) expect_(__LINE__, found, THRIFFTY_STATUS_##expected)

static void that_(int line, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: does not hold on rank %d\n", line, rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define that(holds) that_(__LINE__, holds)

/* Options from a list of names and values. A plan made with wrong ones fails. */
static thriffty_options *options_with_(const char *const *settings) {
    thriffty_options *options;
    expect(thriffty_options_create(&options), OK);
    for (; *settings != NULL; settings += 2) thriffty_options_set(options, settings[0], settings[1]);
    return options;
}
#define options_with(...) options_with_((const char *const[]){__VA_ARGS__, NULL})
