/* list.h - a doubly linked list whose links live in the things listed.
 *
 * A node that is in no list points to itself, so list_del() is always safe. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/own.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

static inline void list_add_head(struct list *head, struct list *n)
{
    list_add_tail(head->next, n);
}

static inline void list_del(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

#define LIST_FIRST(head, type, member)                                                             \
    (list_empty(head) ? NULL : CONTAINER_OF((head)->next, type, member))

/* `it` may be removed from the list inside the loop, its neighbours may not. */
#define LIST_EACH(head, it, type, member)                                                          \
    for (struct list *l_ = (head)->next, *n_ = l_->next;                                           \
         l_ != (head) && ((it) = CONTAINER_OF(l_, type, member), 1); l_ = n_, n_ = l_->next)

#endif
