/* fuzz_ws.c - WebSocket frames after a good handshake; messages are echoed, and
 * the owner is told of the end exactly once in every case. */
#include "fuzz_peer.h"

static void on_request(void *arg, struct http_req *r)
{
    (void)arg;
    FUZZ_MUST(http_ws_accept(r, NULL, &fuzz_ws_ops, NULL) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_ws_closes = 0;
    fuzz_converse(
        on_request,
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        data, n);
    FUZZ_MUST(fuzz_ws_closes == 1);
    return 0;
}
