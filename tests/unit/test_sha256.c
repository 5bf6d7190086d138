#include "unit.h"

/* Both ways of doing a block are tried, whatever this machine has. */
#include "base/sha256.c"

static const char *hash(const char *p, size_t n, size_t piece)
{
    static char out[SHA256_HEX];
    struct sha256 s;

    sha256_init(&s);
    for (size_t at = 0; at < n; at += piece)
        sha256_add(&s, p + at, n - at < piece ? n - at : piece);
    sha256_hex(&s, out);
    return out;
}

TEST(the_examples_of_the_standard_come_out)
{
    static char million[1000000];

    CHECK_STR(hash("", 0, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(hash("abc", 3, 3),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(million, 'a', sizeof(million));
    CHECK_STR(hash(million, sizeof(million), 4096),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(the_hash_does_not_depend_on_the_pieces)
{
    char text[300];
    char whole[SHA256_HEX];

    for (size_t n = 0; n < sizeof(text); n += 7) {
        memset(text, 'x', n);
        strcpy(whole, hash(text, n, sizeof(text)));
        for (size_t piece = 1; piece < 70; piece++)
            CHECK_STR(hash(text, n, piece), whole);
    }
}

TEST(the_instructions_of_the_processor_and_plain_c_give_the_same_digest)
{
    struct sha256 a, b;
    unsigned char bytes[64];
    uint32_t x = 1;

    if (!has_instructions())
        return;
    sha256_init(&a);
    sha256_init(&b);
    for (int i = 0; i < 2000; i++) {
        for (size_t j = 0; j < sizeof(bytes); j++)
            bytes[j] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
        block_fast(&a, bytes);
        block_plain(&b, bytes);
        CHECK(memcmp(a.h, b.h, sizeof(a.h)) == 0);
    }
}
