// tables.mjs - routes that /v1/openapi.json does not describe: those of E2B's API. `body`: a shape of JSON
// as in a schema; `data`: the route is envd's, of the sandbox whose id is in the Host header.
const s = (extra = {}) => ({ type: 'string', ...extra });
const n = (minimum = 0, maximum = 1e6) => ({ type: 'integer', minimum, maximum });
const o = (properties, required = []) => ({ type: 'object', properties, required });
const b = { type: 'boolean' };
const list = (items) => ({ type: 'array', items });
const words = { type: 'object', additionalProperties: s() };

const create = o({ templateID: s({ enum: ['base'] }), timeout: n(0, 60), metadata: words, envVars: words, secure: b, autoPause: b, allow_internet_access: b }, ['templateID']);
const process = o({ cmd: s({ enum: ['true', '/bin/sh', 'nothing'] }), args: list(s()), envs: words, cwd: s() });
const selector = o({ pid: n(1, 1000), tag: s() });
const path = o({ path: s({ enum: ['/workspace', '/tmp/a', '/', '/etc/passwd', '/nothing'] }), depth: n(0, 5) });

export const e2b = [
  ['POST', '/sandboxes', create], ['POST', '/v2/sandboxes', create], ['GET', '/sandboxes'], ['GET', '/v2/sandboxes?metadata&state&limit&nextToken'],
  ['GET', '/sandboxes/{id}'], ['DELETE', '/sandboxes/{id}'], ['POST', '/sandboxes/{id}/connect', o({ timeout: n(0, 100), memory: b })],
  ['POST', '/v2/sandboxes/{id}/connect', o({ timeout: n(0, 100) })], ['POST', '/sandboxes/{id}/timeout', o({ timeout: n(30, 300) })],
  ['POST', '/sandboxes/{id}/pause', o({ memory: b })], ['POST', '/sandboxes/{id}/resume', o({ timeout: n(30, 300), autoPause: b })],
  ['POST', '/sandboxes/{id}/refreshes', o({ duration: n(0, 300) })], ['GET', '/sandboxes/{id}/metrics?start&end'], ['GET', '/sandboxes/metrics?sandbox_ids'],
  ['GET', '/sandboxes/{id}/logs?start&limit'], ['GET', '/v2/sandboxes/{id}/logs?cursor&limit&direction&level&search'],
  ['PUT', '/sandboxes/{id}/network', o({ allowOut: list(s()), denyOut: list(s()), allow_internet_access: b })],
  ['POST', '/sandboxes/{id}/snapshots', o({ name: s() })], ['POST', '/sandboxes/{id}/fork', o({ timeout: n(15, 60), count: n(1, 2) })],
  ['GET', '/snapshots?sandboxID&name&limit&nextToken'], ['GET', '/templates'], ['GET', '/v2/templates?limit&nextToken'], ['GET', '/templates/aliases/{name}'],
  ['GET', '/teams'], ['GET', '/volumes'], ['POST', '/v3/templates', o({ name: s(), tags: list(s()), cpuCount: n(), memoryMB: n() })],
  ['GET', '/files?path&signature&signature_expiration&username'],
].map(([method, path_, body]) => ({ plane: 'e2b', method, path: path_, body }));

export const envd = [
  ['GET', '/health'], ['GET', '/metrics'], ['GET', '/envs'], ['GET', '/files?path&username'], ['POST', '/files?path&username', 'raw'],
  ['POST', '/files/compose', o({ source_paths: list(s()), destination_path: s() })],
  ...['Stat', 'ListDir', 'MakeDir', 'Remove'].map((x) => ['POST', `/filesystem.Filesystem/${x}`, path]),
  ['POST', '/filesystem.Filesystem/Move', o({ source: s(), destination: s() })], ['POST', '/filesystem.Filesystem/CreateWatcher', o({ path: s(), recursive: b })],
  ['POST', '/filesystem.Filesystem/GetWatcherEvents', o({ watcherId: s() })], ['POST', '/filesystem.Filesystem/RemoveWatcher', o({ watcherId: s() })],
  ['POST', '/process.Process/List', o({})], ['POST', '/process.Process/SendInput', o({ process: selector, input: o({ stdin: s() }) })],
  ['POST', '/process.Process/SendSignal', o({ process: selector, signal: s({ enum: ['SIGNAL_SIGTERM', 'SIGNAL_SIGKILL'] }) })],
  ['POST', '/process.Process/Update', o({ process: selector, pty: o({ size: o({ cols: n(), rows: n() }) }) })],
  ['POST', '/process.Process/Start', o({ process, stdin: b }), true], ['POST', '/process.Process/Connect', o({ process: selector }), true],
].map(([method, path_, body, framed]) => ({ plane: 'envd', data: true, method, path: path_, body, framed }));
