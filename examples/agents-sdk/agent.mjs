// agent.mjs - an agent that really works, in a sandbox of Cove, through a client that was
// written for somebody else's: it writes a program and its tests, sees them fail, fixes
// the program; its workspace is kept, its sandbox lost, and it goes on in another one.
//
//   npm install @openai/agents@0.18.0 @openai/agents-extensions@0.18.0
//   export CLOUDFLARE_SANDBOX_WORKER_URL=... CLOUDFLARE_SANDBOX_API_KEY=...   # `cove serve` prints both
//   node agent.mjs
import { run, setTracingDisabled } from '@openai/agents';
import { Manifest, SandboxAgent, filesystem, shell } from '@openai/agents-core/sandbox';
import { clientFor } from './clients.mjs';
import { StandIn } from './stand-in.mjs';

setTracingDisabled(true);

const create = (path, ...lines) => ({ type: 'create_file', path, diff: lines.map((l) => `+${l}`).join('\n') });
const update = (path, ...lines) => ({ type: 'update_file', path, diff: ['@@', ...lines].join('\n') });
const tests = 'python3 -B -m unittest -v 2>&1';

const firstDay = [
  { edit: create('slug.py', 'def slug(text):', '    return text.lower().replace(" ", "-")') },
  { edit: create(
    'test_slug.py', 'import unittest', 'from slug import slug', '', '', 'class SlugTest(unittest.TestCase):',
    '    def test_words(self):', '        self.assertEqual(slug("Hello World"), "hello-world")', '',
    '    def test_blanks(self):', '        self.assertEqual(slug("  a   b  "), "a-b")',
  ) },
  { shell: tests },
  { see: /FAILED \(failures=1\)/, shell: 'cat slug.py' },
  { see: /replace/, edit: update('slug.py', ' def slug(text):', '-    return text.lower().replace(" ", "-")', '+    return "-".join(text.lower().split())') },
  { shell: tests },
  { see: /Ran 2 tests[^]*OK/, shell: 'git init -q . && git add -A && git -c user.name=agent -c user.email=agent@example.org commit -qm "slugs" && git log --oneline' },
  { see: /slugs/, say: 'The tests pass.' },
];

const secondDay = [
  { shell: 'git status --short; git log --oneline; ls' },
  { see: /slugs[^]*slug\.py/, edit: update('test_slug.py', '         self.assertEqual(slug("  a   b  "), "a-b")', '+', '+    def test_signs(self):', '+        self.assertEqual(slug("What? No!"), "what-no")') },
  { shell: tests },
  { see: /FAILED \(failures=1\)/, edit: update('slug.py', '-def slug(text):', '-    return "-".join(text.lower().split())', '+import re', '+', '+', '+def slug(text):', '+    return "-".join(re.findall(r"\\w+", text.lower()))') },
  { shell: tests },
  { see: /Ran 3 tests[^]*OK/, shell: 'git diff --stat' },
  { see: /2 files changed/, say: 'Signs are left out now.' },
];

function agentWith(steps) {
  return new SandboxAgent({
    name: 'Engineer',
    instructions: 'You write small programs and prove that they work.',
    model: new StandIn(steps),
    capabilities: [shell(), filesystem()],
  });
}

async function day(session, steps, task) {
  const result = await run(agentWith(steps), task, { sandbox: { session }, maxTurns: steps.length + 1 });
  console.log(`> ${task}\n  ${result.finalOutput}`);
}

const client = await clientFor(process.env.SANDBOX ?? 'cloudflare');

let session = await client.create({ manifest: new Manifest({}) });
await day(session, firstDay, 'Write a function that makes slugs, with tests.');
const kept = await session.persistWorkspace();
console.log(`  kept ${kept.length} bytes of its workspace; now its sandbox is lost`);
await session.close();

session = await client.create({ manifest: new Manifest({}) });
await session.hydrateWorkspace(kept);
await day(session, secondDay, 'Leave out punctuation.');
await session.close();
