#include "unit.h"

#include "helper/image/manifest.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define LAYER "application/vnd.oci.image.layer.v1.tar+gzip"

static struct err e;

static int docker(const char *text)
{
    static struct manifest m;

    return manifest_docker(text, strlen(text), &m, &e);
}

TEST(a_docker_manifest_must_have_one_image)
{
    CHECK_INT(docker("[{\"Config\":\"c\",\"Layers\":[\"a\",\"b\"]}]"), 0);
    CHECK_INT(docker("[]"), -1);
    CHECK_HAS(e.msg, "expected one image, not 0");
    CHECK_INT(docker("[{},{}]"), -1);
    CHECK_INT(docker("{}"), -1);
    CHECK_INT(docker("[{\"Config\":\"c\",\"Layers\":[]}]"), -1);
    CHECK_INT(docker("[{\"Config\":\"c\",\"Layers\":[1]}]"), -1);
    CHECK_INT(docker("[{\"Config\":\"c\",\"Layers\":[\"a\"],\"Layers\":[\"b\"]}]"), -1);
    CHECK_INT(docker("nonsense"), -1);
}

static int pick(const char *text, struct manifest_ref *ret)
{
    return manifest_index(text, strlen(text), ret, &e);
}

TEST(an_index_gives_the_image_for_this_machine)
{
    struct manifest_ref r;

    CHECK_INT(pick("{\"manifests\":[{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" A64
                   "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}},"
                   "{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" B64
                   "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
                   &r),
              0);
    CHECK_STR(r.digest, B64);
    CHECK_INT(r.kind, MANIFEST_IMAGE);
    CHECK_INT(pick("{\"manifests\":[{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" A64
                   "\"}]}",
                   &r),
              0);
    CHECK_INT(pick("{\"manifests\":[{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:" A64
                   "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}}]}",
                   &r),
              -1);
    CHECK_HAS(e.msg, "none of the 1 images");
    CHECK_INT(
        pick("{\"manifests\":[{\"mediaType\":\"text/plain\",\"digest\":\"sha256:" A64 "\"}]}", &r),
        -1);
    CHECK_HAS(e.msg, "text/plain");
    CHECK_INT(pick("{}", &r), -1);
}

static int oci(const char *media, const char *digest)
{
    static struct manifest m;
    char text[600];

    snprintf(text, sizeof(text),
             "{\"config\":{\"digest\":\"sha256:" A64
             "\"},\"layers\":[{\"mediaType\":\"%s\",\"digest\":\"%s\"}]}",
             media, digest);
    return manifest_oci(text, strlen(text), &m, &e);
}

TEST(layers_with_unknown_type_or_bad_digest_are_refused)
{
    CHECK_INT(oci(LAYER, "sha256:" B64), 0);
    CHECK_INT(oci(LAYER "+encrypted", "sha256:" B64), -1);
    CHECK_HAS(e.msg, "encrypted");
    CHECK_INT(oci(LAYER, "sha512:" B64), -1);
    CHECK_INT(oci(LAYER, "sha256:" B64 "b"), -1);
    CHECK_INT(oci(LAYER, "sha256:BBBBbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
              -1);
}

TEST(a_config_gives_settings_and_diff_ids)
{
    static const char text[] =
        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"rootfs\":{\"diff_ids\":"
        "[\"sha256:" A64 "\"]},\"config\":{\"Env\":[\"A=b\"],\"Cmd\":null}}";
    static struct manifest_config c;

    CHECK_INT(manifest_config(text, strlen(text), &c, &e), 0);
    CHECK_INT(c.nlayers, 1);
    CHECK_STR(c.diff_ids[0], A64);
    CHECK_INT(json_array_size(json_object_get(c.settings, "env")), 1);
    CHECK_INT(json_array_size(json_object_get(c.settings, "cmd")), 0);
    CHECK_STR(json_string_value(json_object_get(c.settings, "user")), "");
    manifest_config_free(&c);
}

TEST(an_image_for_another_machine_is_refused)
{
    static const char text[] =
        "{\"architecture\":\"arm64\",\"os\":\"linux\",\"rootfs\":{\"diff_ids\":[\"sha256:" A64
        "\"]}}";
    static struct manifest_config c;

    CHECK_INT(manifest_config(text, strlen(text), &c, &e), -1);
    CHECK_HAS(e.msg, "linux/arm64");
}

TEST(chain_ids_follow_the_oci_image_spec)
{
    char chain[SHA256_HEX] = "";

    manifest_chain(chain, A64);
    CHECK_STR(chain, A64);
    manifest_chain(chain, B64);
    CHECK_STR(chain, "ccd722928bd92476ba1745586fed6e45a102504185ad88cd89e01ff116fd146c");
}
