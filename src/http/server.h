/* server.h - internal to src/http: what a connection needs of its server. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/conn.h"

void http_server_next_id(struct http_server *s, char out[HTTP_ID_MAX]);
/* The value of the Date header, put together once a second. */
const char *http_server_date(struct http_server *s);
/* A connection is gone; it may have been the last one that draining waits for. */
void http_server_shrunk(struct http_server *s);

#endif
