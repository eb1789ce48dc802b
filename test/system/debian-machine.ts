// debian-machine.ts: a small Debian in a directory, and its systemd as process 1 of namespaces of its own. Needs
// root, debootstrap and the archive of Debian.

import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { mkdir, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { debVersion } from '../../config/packaging/control-files.ts'
import { eventually } from '../support/eventually.ts'
import { runProgram, type Result } from './installation.ts'

const run = promisify(execFile)

/** What programs in the machine see: nothing of this one. */
export const env = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  DEBIAN_FRONTEND: 'noninteractive',
}

/** Null where such a machine can be made here. */
export async function whyNoMachine(): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'it needs root'
  for (const program of ['debootstrap', 'dpkg-deb', 'unshare', 'nsenter', 'ip'])
    if (
      !existsSync(`/usr/sbin/${program}`) &&
      !existsSync(`/usr/bin/${program}`) &&
      !existsSync(`/sbin/${program}`)
    )
      return `${program} is not installed`
  const tried = await runProgram('unshare', ['--pid', '--mount', '--net', '--cgroup', '--fork', 'true'], {
    cwd: '/',
  })
  return tried.status === 0 ? null : `namespaces cannot be made here: ${tried.stderr.trim()}`
}

/** Makes the root directory. Why it is not there, such as an archive that cannot be reached; else null. */
export async function installDebian(
  folder: string,
  more: readonly string[] = ['init-system-helpers', 'systemd-sysv'],
): Promise<string | null> {
  const include = more.length === 0 ? [] : [`--include=${more.join()}`]
  const options = ['--variant=minbase', ...include, 'bookworm', folder]
  const { status, stdout } = await runProgram('debootstrap', options, { cwd: '/', timeoutMs: 600_000 })
  if (status !== 0) return `debootstrap failed: ${stdout.slice(-500)}`
  for (const name of globSync('etc/systemd/system/getty.target.wants/*', { cwd: folder }))
    await rm(join(folder, name))
  // The console of the machine is a file: a login there fails, again and again.
  const console = join(folder, 'etc/systemd/system/console-getty.service')
  if (more.includes('systemd-sysv')) await symlink('/dev/null', console)
  return null
}

/** Runs a shell command in the root directory, without systemd. */
export function inRoot(folder: string, command: string): Promise<Result> {
  return runProgram('chroot', [folder, 'sh', '-c', command], { cwd: '/', env, timeoutMs: 300_000 })
}

export type Machine = {
  /** A shell command as root. */
  run(command: string, options?: { input?: string }): Promise<Result>
  stop(): Promise<void>
}

/** Boots the root directory; resolves when all units are started. */
export async function bootDebian(folder: string): Promise<Machine> {
  const group = `telemetry-gateway-test-${process.pid}`
  const hierarchies = existsSync('/sys/fs/cgroup/cgroup.controllers')
    ? ['/sys/fs/cgroup']
    : globSync('/sys/fs/cgroup/*/')
  const groups = hierarchies.map((path) => join(path, group))
  for (const path of groups) await mkdir(path).catch(() => undefined)
  const script = resolve(import.meta.dirname, 'boot-machine.sh')
  // The shell moves itself into the groups before it makes the namespaces, which then begin there.
  const intoGroups = groups.map((path) => `echo 0 >${path}/cgroup.procs 2>/dev/null || true`).join('; ')
  const namespaces = '--pid --mount --net --uts --ipc --cgroup --fork --kill-child=KILL'
  // The machine must not outlive a test run that is killed.
  const command = `${intoGroups}; exec setpriv --pdeathsig KILL unshare ${namespaces} bash ${script} ${folder}`
  const outer = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let output = ''
  for (const stream of [outer.stdout, outer.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
  const machine = { run: runIn, stop }
  try {
    await eventually(async () => {
      if (outer.exitCode !== null) throw new Error(`the machine does not boot: ${output}`)
      return (await runIn('systemctl is-system-running')).stdout.includes('running')
    })
    return machine
  } catch (error) {
    await stop()
    throw error
  }

  async function runIn(shell: string, { input = '' } = {}): Promise<Result> {
    const pid = await firstChild(outer)
    if (pid === null) return { status: 1, stdout: '', stderr: 'not started' }
    const child = spawn('nsenter', ['-t', pid, '-a', '-r', '-w', 'sh', '-c', shell], { env, cwd: '/' })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += String(chunk)))
    child.stderr.on('data', (chunk) => (stderr += String(chunk)))
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    const [status] = (await once(child, 'close')) as [number | null]
    return { status: status ?? 1, stdout, stderr }
  }

  async function stop(): Promise<void> {
    const ended = once(outer, 'exit')
    // Ends process 1 of the namespace, and with it all others.
    if (outer.exitCode === null && outer.signalCode === null) {
      outer.kill('SIGKILL')
      await ended
    }
    for (const path of groups) {
      const folders = [path, ...globSync('**/', { cwd: path }).map((name) => join(path, name))]
      for (const name of folders.toSorted((a, b) => b.length - a.length))
        await eventually(() =>
          rmdir(name).then(
            () => true,
            (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
          ),
        )
    }
  }
}

/** Of a process that makes namespaces: process 1 in them. */
export async function firstChild({ pid }: ChildProcess): Promise<string | null> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return /\d+/.exec(children)?.[0] ?? null
}

/**
 * The package with the name of another build, and nothing else changed but what `edit` changes: the text of each
 * maintainer script, by its name.
 */
export async function withName(
  file: string,
  { from, to, edit = (_name, text) => text }: { from: string; to: string; edit?: EditScript },
): Promise<string> {
  const folder = `${file}.unpacked`
  await run('dpkg-deb', ['-R', file, folder])
  const names = [
    'DEBIAN/control',
    ...globSync('DEBIAN/p*', { cwd: folder }),
    'usr/lib/telemetry-gateway/package.json',
    'usr/lib/telemetry-gateway/dist/build-name',
  ]
  const named = (text: string) => text.replaceAll(from, to).replaceAll(debVersion(from), debVersion(to))
  for (const name of names) {
    const path = join(folder, name)
    await writeFile(path, edit(basename(name), named(await readFile(path, 'utf8'))))
  }
  const changed = named(file)
  await run('dpkg-deb', ['--root-owner-group', '-Znone', '-b', folder, changed])
  await rm(folder, { recursive: true })
  return changed
}

type EditScript = (name: string, text: string) => string
