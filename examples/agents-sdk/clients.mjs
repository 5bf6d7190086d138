// clients.mjs - the same agent through different clients; all of them only want a URL and a key.
const clients = {
  async cloudflare() {
    const { CloudflareSandboxClient } = await import('@openai/agents-extensions/sandbox/cloudflare');
    return new CloudflareSandboxClient({ workerUrl: process.env.CLOUDFLARE_SANDBOX_WORKER_URL });
  },
  async e2b() {
    const { E2BSandboxClient } = await import('@openai/agents-extensions/sandbox/e2b');
    return new E2BSandboxClient({ template: 'base', workspacePersistence: 'tar' });
  },
};

export function clientFor(name) {
  if (!(name in clients)) throw new Error(`SANDBOX: one of ${Object.keys(clients).join(', ')}`);
  return clients[name]();
}
