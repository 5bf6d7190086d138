// One of several workers that share a workspace: counts in a file, one step a second or as fast as told.
//
//   node worker.mjs NAME STEPS [PAUSE_MS]
//
// Start two at once and kill one: the other goes on with the same files, in the same sandbox. Kill both, and
// the next one that is started goes on where they were.
const [name, steps, pause = '1000'] = process.argv.slice(2);
const base = process.env.COVE_URL ?? 'http://127.0.0.1:7878';
const me = `worker-${process.pid}`;
const ttl = 5000;

async function call(method, path, body) {
  const r = await fetch(`${base}/v1/workspaces/${name}${path}`, {
    method,
    headers: { authorization: `Bearer ${process.env.COVE_API_KEY}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const text = await r.text();
  if (!r.ok) throw new Error(`${method} ${path}: ${text}`);
  return text && JSON.parse(text);
}

await call('PUT', '', {}); // makes it, or finds it
const { role, epoch } = await call('POST', '/holders', { holder: me, ttl_ms: ttl });
console.log(`${me}: ${role}, epoch ${epoch}`);
const beat = setInterval(() => call('PUT', `/holders/${me}`, { epoch, ttl_ms: ttl }).catch((e) => { console.error(e.message); process.exit(1); }), ttl / 3);

for (let i = 0; i < Number(steps); i++) {
  const { stdout } = await call('POST', '/exec', { command: 'flock ~/lock sh -c \'n=$(cat ~/count 2>/dev/null || echo 0); echo $((n + 1)) >~/count; cat ~/count\'' });
  console.log(`${me}: ${stdout.trim()}`);
  await new Promise((r) => setTimeout(r, Number(pause)));
}
clearInterval(beat);
await call('DELETE', `/holders/${me}?epoch=${epoch}`);
