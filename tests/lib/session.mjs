// A session of a sandbox, for tests.
import assert from 'node:assert/strict';

export class Session {
  constructor(d, sandbox, record) {
    this.d = d;
    this.id = record.id;
    this.url = `/v1/sandboxes/${sandbox}/sessions/${record.id}`;
  }
  exec(command, opts = {}) {
    return this.d.post(`${this.url}/exec`, { command, ...opts });
  }
  async out(command, opts) {
    return (await this.exec(command, opts)).stdout;
  }
  get() {
    return this.d.get(this.url);
  }
  command(id) {
    return this.d.get(`${this.url}/commands/${id}`);
  }
  interrupt() {
    return this.d.post(`${this.url}/interrupt`, undefined);
  }
  async delete() {
    const a = await this.d.call('DELETE', this.url);
    assert.equal(a.status, 204, a.text);
    return a;
  }
  gone(command = 'true') {
    return this.d.fails(410, 'gone', 'POST', `${this.url}/exec`, { command });
  }
}

export async function openSession(d, sandbox, opts = {}) {
  return new Session(d, sandbox, await d.post(`/v1/sandboxes/${sandbox}/sessions`, opts));
}
