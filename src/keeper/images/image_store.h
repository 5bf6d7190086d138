/* image_store.h - templates on disk; shared by image.c and image_store.c. */
#ifndef KEEPER_IMAGES_IMAGE_STORE_H
#define KEEPER_IMAGES_IMAGE_STORE_H

#include "keeper/image.h"

#define IMAGE_ANY_LAYER UINT32_MAX

struct image_layer {
    char chain[IMAGE_CHAIN + 8];
    char store[32]; /* the import that made it... */
    uint32_t index; /* ...as this layer of it */
    uint32_t pad;
};

struct image {
    struct list link;
    char id[32], format[16];
    uint64_t bytes, files, created_ms;
    bool damaged; /* both copies of its file are: its layers are unknown, and no store is removed */
    uint32_t nlayers, settings_len;
    struct image_layer *layers; /* lowest first; in the same allocation */
    char *settings;             /* likewise */
};

struct image_name {
    struct list link;
    char name[IMAGE_NAME];
    struct image *image;
};

struct images {
    int names_fd, versions_fd;
    struct list names, versions;
    size_t nnames;
    unsigned nlost; /* damaged names: a version without a name may belong to one of them */
};

struct image *image_new(uint32_t nlayers, const char *settings, uint32_t len, struct err *e);
void image_free(struct image *im);
struct image *image_find(struct keeper *k, const char *id);

/* All are durable and atomic. */
int image_save(struct images *s, const struct image *im, struct err *e);
void image_unlink(struct images *s, const struct image *im);
int image_name_save(struct images *s, const char *name, const char *id, struct err *e);
/* True if the name was damaged: removes its files. */
bool image_name_forget_lost(struct keeper *k, const char *name);
int image_name_unlink(struct images *s, const char *name, struct err *e);

struct image_name *image_name_add(struct images *s, const char *name); /* in memory */
void image_name_del(struct images *s, struct image_name *n);

void image_store_name(const char *id, char *out, size_t room);
void image_layer_path(const struct image_layer *l, char *out, size_t room);
int image_store_load(struct keeper *k, struct err *e);
/* Removes stores, and layers of stores, that are not needed. */
void image_store_sweep(struct keeper *k,
                       bool (*needed)(struct keeper *k, const char *store, uint32_t index));

#endif
