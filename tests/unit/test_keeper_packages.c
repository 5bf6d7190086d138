/* Package sources of the default template: only the distribution's, and nothing secret. */
#include "unit.h"

#include "keeper/images/template_system.h"

static const struct system_settings none = {"", "", "", ""};

static const char *sources(struct buf *out, const char *text, const struct system_settings *s)
{
    buf_clear(out);
    system_sources(text, "debian", "bookworm", s, out);
    return buf_cstr(out);
}

TEST(takes_the_sources_of_the_distribution_in_both_forms)
{
    autobuf struct buf out = BUF_INIT(SYSTEM_FILE_MAX);

    CHECK_STR(sources(&out,
                      "# comment\n"
                      "deb http://deb.test/debian bookworm main contrib\n"
                      "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
                      "https://deb.test/debian-security bookworm-security main\n",
                      &none),
              "Types: deb\nURIs: http://deb.test/debian\nSuites: bookworm\nComponents: main "
              "contrib\n\n"
              "Types: deb\nURIs: https://deb.test/debian-security\nSuites: bookworm-security\n"
              "Components: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n");
    CHECK_STR(sources(&out,
                      "Types: deb\nURIs: http://deb.test/debian\nSuites: bookworm trixie "
                      "bookworm-updates\nComponents: main\n",
                      &none),
              "Types: deb\nURIs: http://deb.test/debian\nSuites: bookworm bookworm-updates\n"
              "Components: main\n\n");
}

TEST(leaves_out_credentials_third_parties_other_suites_and_disabled_sources)
{
    autobuf struct buf out = BUF_INIT(SYSTEM_FILE_MAX);
    static const char *const texts[] = {
        "deb http://me:secret@deb.test/debian bookworm main\n",
        "deb file:/srv/mirror bookworm main\n",
        "deb [signed-by=/etc/apt/keyrings/docker.gpg] https://docker.test/linux bookworm stable\n",
        "deb http://deb.test/debian trixie main\n",
        "Types: deb\nURIs: http://deb.test/debian\nSuites: bookworm\nEnabled: no\n",
        "Types: deb\nURIs: http://deb.test/debian\nSuites: bookworm\nSigned-By:\n -----BEGIN\n",
        "Types: deb\nURIs: http://a:b@deb.test/debian\nSuites: bookworm\n",
        "deb\n",
        "deb [\n",
        "deb [x] \n",
        "",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR(sources(&out, texts[i], &none), "");
}

TEST(uses_the_mirrors_that_the_operator_named)
{
    autobuf struct buf out = BUF_INIT(SYSTEM_FILE_MAX);
    struct system_settings s = {"http://m.test/d,http://m.test/s", "", "", ""};

    CHECK_STR(sources(&out,
                      "deb http://deb.test/debian bookworm main\n"
                      "deb http://deb.test/debian-security bookworm-security main\n",
                      &s),
              "Types: deb\nURIs: http://m.test/d\nSuites: bookworm\nComponents: main\n\n"
              "Types: deb\nURIs: http://m.test/s\nSuites: bookworm-security\nComponents: main\n\n");
}

TEST(refuses_settings_that_are_not_urls)
{
    static const char *const bad[] = {"x",          "ftp://x",     "http://",
                                      "http://a b", "http://a\"b", "http://a\nb"};
    struct err e;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct system_settings s = {"", bad[i], "", ""};

        CHECK(system_check(&s, &e) < 0);
        CHECK(e.kind == ERR_INVALID);
        CHECK(strncmp(e.msg, "pip-index: ", 11) == 0);
    }
    CHECK(system_check(&none, &e) == 0);
}
