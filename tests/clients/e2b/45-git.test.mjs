// sandbox.git: every method of the SDK, against repositories inside the sandbox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startE2b } from './lib.mjs';

let d, sdk, sbx, git;
const ORIGIN = '/home/user/origin.git';
const REPO = '/home/user/repo';
before(async () => {
  ({ d, sdk } = await startE2b());
  sbx = await sdk.Sandbox.create();
  ({ git } = sbx);
});
after(() => d.stop());

const sh = async (cmd) => (await sbx.commands.run(cmd)).stdout;

test('a user is configured, and settings are read back', async () => {
  await git.configureUser('Test User', 'test@example.com');
  assert.equal(await git.getConfig('user.name'), 'Test User');
  assert.equal(await git.getConfig('user.email'), 'test@example.com');
  await git.setConfig('pull.rebase', 'false');
  assert.equal(await git.getConfig('pull.rebase'), 'false');
  assert.equal(await git.getConfig('no.such'), undefined);
  await assert.rejects(git.setConfig('x.y', 'z', { scope: 'local' }), sdk.InvalidArgumentError);
});

test('init, and an empty repository has no commits', async () => {
  await git.init(ORIGIN, { bare: true, initialBranch: 'main' });
  await git.init(REPO, { initialBranch: 'main' });
  const status = await git.status(REPO);
  assert.equal(status.currentBranch, 'main');
  assert.equal(status.isClean, true);
  await git.setConfig('x.y', 'z', { scope: 'local', path: REPO });
  assert.equal(await git.getConfig('x.y', { scope: 'local', path: REPO }), 'z');
  await assert.rejects(git.status('/home/user'), sdk.CommandExitError);
});

test('status shows files before and after add and commit', async () => {
  await sbx.files.write([{ path: `${REPO}/a.txt`, data: 'one\n' }, { path: `${REPO}/b.txt`, data: 'two\n' }]);
  let s = await git.status(REPO);
  assert.deepEqual([s.isClean, s.untrackedCount, s.hasStaged], [false, 2, false]);
  await git.add(REPO, { files: ['a.txt'] });
  s = await git.status(REPO);
  assert.deepEqual([s.stagedCount, s.untrackedCount], [1, 1]);
  assert.deepEqual(s.fileStatus.map((f) => [f.name, f.status]).sort(), [['a.txt', 'added'], ['b.txt', 'untracked']]);
  await git.add(REPO);
  await git.commit(REPO, 'first: "quoted" $HOME');
  assert.equal((await git.status(REPO)).isClean, true);
  assert.equal(await sh(`git -C ${REPO} log -1 --format=%s%n%an`), 'first: "quoted" $HOME\nTest User\n');
  await assert.rejects(git.commit(REPO, 'nothing to commit'), sdk.CommandExitError);
  await git.commit(REPO, 'empty', { allowEmpty: true, authorName: 'Other', authorEmail: 'o@example.com' });
  assert.equal(await sh(`git -C ${REPO} log -1 --format=%an`), 'Other\n');
});

test('git.reset and git.restore change index, files and HEAD as asked', async () => {
  await sbx.files.write(`${REPO}/a.txt`, 'changed\n');
  await git.add(REPO, { all: true });
  await git.reset(REPO, { mode: 'mixed', target: 'HEAD' });
  assert.equal((await git.status(REPO)).hasStaged, false);
  await git.add(REPO, { all: true });
  await git.restore(REPO, { paths: ['a.txt'], staged: true, worktree: true });
  assert.equal(await sbx.files.read(`${REPO}/a.txt`), 'one\n');
  await git.reset(REPO, { mode: 'hard', target: 'HEAD~1' });
  assert.equal(await sh(`git -C ${REPO} rev-list --count HEAD`), '1\n');
  await git.reset(REPO, { paths: ['a.txt'] });
  await assert.rejects(git.restore(REPO, { paths: [] }), sdk.InvalidArgumentError);
});

test('git creates, lists, checks out and deletes branches', async () => {
  await git.createBranch(REPO, 'feature');
  let b = await git.branches(REPO);
  assert.deepEqual([b.branches.sort(), b.currentBranch], [['feature', 'main'], 'feature']);
  await git.checkoutBranch(REPO, 'main');
  assert.equal((await git.branches(REPO)).currentBranch, 'main');
  await git.deleteBranch(REPO, 'feature');
  assert.deepEqual((await git.branches(REPO)).branches, ['main']);
  await assert.rejects(git.checkoutBranch(REPO, 'nowhere'), sdk.CommandExitError);
  await git.createBranch(REPO, 'ahead');
  await git.commit(REPO, 'ahead', { allowEmpty: true });
  await git.checkoutBranch(REPO, 'main');
  await assert.rejects(git.deleteBranch(REPO, 'ahead'), sdk.CommandExitError);
  await git.deleteBranch(REPO, 'ahead', { force: true });
});

test('git adds remotes, pushes, clones and pulls', async () => {
  await git.remoteAdd(REPO, 'origin', ORIGIN);
  assert.equal(await git.remoteGet(REPO, 'origin'), ORIGIN);
  assert.equal(await git.remoteGet(REPO, 'other'), undefined);
  await assert.rejects(git.remoteAdd(REPO, 'origin', '/elsewhere'), sdk.CommandExitError);
  await git.remoteAdd(REPO, 'origin', ORIGIN, { overwrite: true, fetch: true });
  await git.push(REPO, { remote: 'origin', branch: 'main', setUpstream: true });
  const copy = '/home/user/copy';
  await git.clone(`file://${ORIGIN}`, { path: copy, branch: 'main', depth: 1 });
  assert.equal(await sbx.files.read(`${copy}/a.txt`), 'one\n');
  await sbx.files.write(`${REPO}/new.txt`, 'x');
  await git.add(REPO);
  await git.commit(REPO, 'second');
  assert.deepEqual([(await git.status(REPO)).ahead, (await git.status(REPO)).upstream], [1, 'origin/main']);
  await git.push(REPO);
  await git.pull(copy);
  assert.equal(await sbx.files.read(`${copy}/new.txt`), 'x');
  await assert.rejects(git.clone('file:///nowhere.git', { path: '/home/user/no' }), sdk.CommandExitError);
});

test('a push without an upstream fails with the reason', async () => {
  await git.createBranch(REPO, 'lonely');
  await assert.rejects(git.pull(REPO), sdk.GitUpstreamError);
  await git.checkoutBranch(REPO, 'main');
});

test('a conflict shows in status', async () => {
  const other = '/home/user/other';
  await git.clone(ORIGIN, { path: other });
  await sbx.files.write(`${other}/a.txt`, 'theirs\n');
  await git.add(other);
  await git.commit(other, 'theirs');
  await git.push(other);
  await sbx.files.write(`${REPO}/a.txt`, 'ours\n');
  await git.add(REPO);
  await git.commit(REPO, 'ours');
  await assert.rejects(git.pull(REPO), sdk.CommandExitError);
  const s = await git.status(REPO);
  assert.deepEqual([s.hasConflicts, s.conflictCount], [true, 1]);
});

test('credentials are stored when asked, with the risk that its name says', async () => {
  await git.dangerouslyAuthenticate({ username: 'u', password: 'secret', host: 'git.example.com' });
  assert.equal(await git.getConfig('credential.helper'), 'store');
  assert.match(await sbx.files.read('.git-credentials'), /https:\/\/u:secret@git\.example\.com/);
});
