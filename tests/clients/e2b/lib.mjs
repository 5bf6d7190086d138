// lib.mjs - one daemon, and the published SDK and CLI of E2B pointed at it.
import path from 'node:path';
import { ROOT_DIR, run, startDaemon } from '../../lib/cove.mjs';

const CLI = path.join(ROOT_DIR, 'tests/clients/node_modules/@e2b/cli/dist/index.js');

/** Starts a daemon and points the SDK, which reads its environment when it is imported, at it. */
export async function startE2b(opts) {
  const d = await startDaemon(opts);
  Object.assign(process.env, envOf(d));
  const sdk = await import('e2b');
  return { d, sdk, cli: (args, o = {}) => cli(d, args, o) };
}

/** What a user exports, as `cove serve` prints it. */
export function envOf(d, key = d.key) {
  return { E2B_API_KEY: key, E2B_API_URL: d.url, E2B_SANDBOX_URL: d.url };
}

function cli(d, args, { env = {}, ...opts } = {}) {
  return run(process.execPath, [CLI, ...args], {
    ...opts,
    env: { ...process.env, ...envOf(d), NO_UPDATE_NOTIFIER: '1', HOME: d.dir, ...env },
  });
}

/** A call of the control plane without the SDK, for what it cannot say. */
export function raw(d, method, url, body, { key = d.key, headers = {} } = {}) {
  return d.call(method, url, body, { key: null, headers: { ...(key ? { 'x-api-key': key } : {}), ...headers } });
}
