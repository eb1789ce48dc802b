// container-image.ts: what an engine does with a Containerfile, as far as it goes without one: its steps run in a root
// directory of Debian, and its command runs in namespaces of its own, under the conditions of the compose file: the user
// of the image, a read-only root, a tmpfs on /tmp, volumes, no capabilities, no new privileges. It has no network but
// loopback, no limits, and no seccomp filter.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readdirSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { env, firstChild, inRoot, installDebian } from './debian-machine.ts'
import { runProgram, type Result } from './installation.ts'

type Instruction = { name: string; value: string }

export type Image = {
  root: string
  user: string
  folder: string
  entrypoint: readonly string[]
  command: readonly string[]
  healthcheck: readonly string[]
  volumes: readonly string[]
}

export function instructionsOf(containerfile: string): Instruction[] {
  const lines = containerfile.split('\n').filter((line) => !line.startsWith('#'))
  const whole = lines.join('\n').replaceAll(/\\\n/g, ' ').split('\n')
  return whole
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', value = ''] = /^(\S+)\s+(.*)$/.exec(line.trim()) ?? []
      return { name, value }
    })
}

/** Runs the steps. `context`: the folder of COPY. Why it cannot be built here, such as an archive out of reach; else the image. */
export async function buildImage(
  file: string,
  { root, context }: { root: string; context: string },
): Promise<Image | string> {
  const image = { root, user: 'root', folder: '/', entrypoint: [], command: [], healthcheck: [], volumes: [] }
  const built: { -readonly [Key in keyof Image]: Image[Key] } = image
  const variables = new Map<string, string>()
  const filled = (text: string) =>
    text.replaceAll(/\$\{?(\w+)\}?/g, (_all, name: string) => variables.get(name) ?? '')
  for (const { name, value } of instructionsOf(await readFile(file, 'utf8'))) {
    switch (name) {
      case 'FROM': {
        if (!value.includes('debian:12')) throw new Error(`No base for ${value} can be made here.`)
        const failed = await installDebian(root, [])
        if (failed !== null) return failed
        break
      }
      case 'ARG':
        variables.set(...(value.split('=') as [string, string]))
        break
      case 'COPY': {
        const [pattern = '', to = ''] = value.split(' ')
        const found = globSync(filled(pattern), { cwd: context })
        if (found.length === 0) throw new Error(`COPY ${value} finds nothing.`)
        await mkdir(join(root, to), { recursive: true })
        for (const path of found) await cp(join(context, path), join(root, to, basename(path)))
        break
      }
      case 'RUN': {
        const { status, stdout, stderr } = await inRoot(root, value)
        if (status !== 0) throw new Error(`RUN ${value} ended with ${status}:\n${stdout}${stderr}`)
        break
      }
      case 'USER':
        built.user = value
        break
      case 'WORKDIR':
        built.folder = value
        break
      case 'ENTRYPOINT':
        built.entrypoint = wordsOf(value)
        break
      case 'CMD':
        built.command = wordsOf(value)
        break
      case 'HEALTHCHECK':
        built.healthcheck = wordsOf(value.slice(value.indexOf('CMD ') + 4))
        break
      case 'VOLUME':
        built.volumes = wordsOf(value)
        break
      case 'EXPOSE':
      case 'STOPSIGNAL':
        break
      default:
        throw new Error(`The instruction ${name} is not known here.`)
    }
  }
  return built
}

function wordsOf(json: string): string[] {
  return JSON.parse(json) as string[]
}

export type Container = {
  /** As `compose exec`: a program in the running container, as its user. */
  exec(words: readonly string[]): Promise<Result>
  /** The output so far. */
  output(): string
  /** SIGTERM to its process 1; the exit status. */
  stop(): Promise<number | null>
}

type RunOptions = {
  /** By path in the container: a folder here. A new one begins with what the image has there, as a named volume does. */
  volumes: Readonly<Record<string, string>>
  user?: string
  words?: readonly string[]
  readOnly?: boolean
  input?: string
}

/** As `run --rm`: to its end. */
export async function runToEnd(image: Image, options: RunOptions): Promise<Result> {
  const child = await start(image, options)
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk) => (stdout += String(chunk)))
  child.stderr?.on('data', (chunk) => (stderr += String(chunk)))
  child.stdin?.end(options.input ?? '')
  const [status] = (await once(child, 'close')) as [number | null]
  return { status: status ?? 1, stdout, stderr }
}

export async function runContainer(image: Image, options: RunOptions): Promise<Container> {
  const child = await start(image, options)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)))
  child.stdin?.end()
  const ended = once(child, 'close') as Promise<[number | null]>
  await eventually(async () => child.exitCode !== null || (await firstChild(child)) !== null)
  return {
    output: () => output,
    async exec(words) {
      const pid = await firstChild(child)
      if (pid === null) throw new Error(`the container has ended: ${output}`)
      const inside = ['nsenter', '-t', pid, '-m', '-p', '-n', '-u', '-i', '-r', '-w']
      const [program = '', ...args] = [...inside, ...asUser(image, image.user), ...words]
      return runProgram(program, args, { cwd: '/', env })
    },
    async stop() {
      const pid = await firstChild(child)
      if (pid !== null) process.kill(Number(pid), 'SIGTERM')
      const [status] = await ended
      return status
    },
  }
}

/** What the engine does before the program: user, folder, and what it may never do. */
function asUser({ folder }: Image, user: string): string[] {
  const program = ['sh', '-c', `cd ${folder} && exec "$@"`, 'sh']
  if (user === 'root') return program
  const rights = [`--reuid=${user}`, `--regid=${user}`, '--init-groups', '--no-new-privs']
  return ['setpriv', ...rights, '--inh-caps=-all', '--bounding-set=-all', ...program]
}

async function start(image: Image, options: RunOptions): Promise<ChildProcess> {
  const { root, entrypoint, command } = image
  const { volumes, user = image.user, words = command, readOnly = true } = options
  for (const [path, folder] of Object.entries(volumes)) {
    await mkdir(folder, { recursive: true })
    if (readdirSync(folder).length === 0)
      await runProgram('cp', ['-a', `${join(root, path)}/.`, folder], { cwd: '/' })
  }
  // What a container writes outside of its volumes goes with it, as with `run --rm`.
  const layer = await mkdtemp(join(dirname(root), 'layer-'))
  for (const name of ['upper', 'work']) await mkdir(join(layer, name))
  const script = [
    'set -e',
    'mount --make-rprivate /',
    `mount -t overlay overlay -o lowerdir=${root},upperdir=${layer}/upper,workdir=${layer}/work ${root}`,
    ...Object.entries(volumes).map(([path, folder]) => `mount --bind ${folder} ${root}${path}`),
    `mount -t proc proc ${root}/proc`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    `mount -t tmpfs -o mode=755 tmpfs ${root}/dev`,
    `for name in null zero full random urandom; do touch ${root}/dev/$name; mount --bind /dev/$name ${root}/dev/$name; done`,
    `ln -s /proc/self/fd ${root}/dev/fd`,
    'ip link set lo up',
    ...(readOnly ? [`mount -o remount,bind,ro ${root}`] : []),
    `cd ${root}`,
    `exec chroot . "$@"`,
  ].join('\n')
  const inside = [...asUser(image, user), ...entrypoint, ...words]
  const namespaces = ['--pid', '--mount', '--net', '--uts', '--ipc', '--fork', '--kill-child=KILL']
  // It must not outlive a test run that is killed.
  const outer = ['--pdeathsig', 'KILL', 'unshare', ...namespaces, 'bash', '-c', script, 'bash', ...inside]
  return spawn('setpriv', outer, { env, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'] })
}
