// installation.ts: packs a copy of the checkout and installs the tarball, with the npm and the Node of the machine.

import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const root = resolve(import.meta.dirname, '../..')

/** What npm and vitest set for the programs that they run, and credentials; settings such as a registry stay. */
const notOfTheMachine =
  /^(npm_(package|lifecycle|command|execpath|node_execpath)|npm_config_(local_|global_)?prefix|NODE|VITEST|AWS_|INIT_CWD)/i

/** The environment of a person on this machine, without the pinned Node in PATH. */
export const machineEnvironment: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !notOfTheMachine.test(name))),
  PATH: (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter),
  npm_config_update_notifier: 'false',
}

export type Result = { status: number; stdout: string; stderr: string }

/** Runs a program to its end; a status other than 0 is a result, not an error. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv; timeoutMs?: number },
): Promise<Result> {
  const { cwd, env = machineEnvironment, timeoutMs = 60_000 } = options
  try {
    const settings = { cwd, env, timeout: timeoutMs, maxBuffer: 64 * 1024 ** 2 }
    return { status: 0, ...(await run(program, args, settings)) }
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string }
    if (typeof code === 'number') return { status: code, stdout, stderr }
    throw error
  }
}

/** npm, from its cache where possible. Throws with npm's words when it fails. */
export async function npm(cwd: string, ...args: readonly string[]): Promise<Result> {
  const result = await runProgram('npm', [...args, '--prefer-offline'], { cwd, timeoutMs: 300_000 })
  if (result.status !== 0) throw new Error(`npm ${args.join(' ')}:\n${result.stdout}${result.stderr}`)
  return result
}

/** Why nothing can be installed here, or null. The pinned Node is the only thing that an installation downloads. */
export async function whyNotInstallable(pinned: readonly string[]): Promise<string | null> {
  try {
    for (const name of pinned) await npm(root, 'cache', 'add', name, '--fetch-retries=0')
    return null
  } catch (error) {
    return `npm cannot fetch ${pinned.join(', ')}: ${String(error).slice(0, 400)}`
  }
}

/** Files that lie about in a checkout that is used, none of which may be published. */
const strayFiles = [
  '.env',
  'gateway.yaml',
  'ingestion.json',
  'spool/CURRENT',
  'config/examples/spool/store/CURRENT',
  'config/examples/ingestion.json',
  'config/examples/tls.key',
  'config/presets/notes.txt',
  'systemd/ingestion.json',
  'docs/.env',
  'dist/stale.js',
]

/** A checkout after some use: the files of this one, its packages, and stray files. */
export async function copyCheckout(folder: string): Promise<string> {
  const left = new Set(['node_modules', 'dist', 'coverage', '.git', 'spool'])
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(root)) {
    if (!left.has(name)) await cp(join(root, name), join(folder, name), { recursive: true })
  }
  const linked = await runProgram('cp', ['-al', join(root, 'node_modules/.'), join(folder, 'node_modules')], {
    cwd: root,
  })
  // Another file system has no hard links.
  if (linked.status !== 0)
    await runProgram('cp', ['-a', join(root, 'node_modules/.'), join(folder, 'node_modules')], { cwd: root })
  for (const name of strayFiles) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), 'a secret')
  }
  return folder
}

/** The tarball of `npm run package -- --npm`. */
export async function pack(checkout: string): Promise<string> {
  const args = ['run', '--silent', 'package', '--', '--npm', '--to', '.']
  const { status, stdout, stderr } = await runProgram('npm', args, { cwd: checkout, timeoutMs: 400_000 })
  if (status !== 0) throw new Error(`npm ${args.join(' ')}:\n${stdout}${stderr}`)
  return stdout.trim().split('\n').at(-1) ?? ''
}

/** The paths in a tarball, without the `package/` in front. */
export async function filesOf(tarball: string): Promise<string[]> {
  const { stdout } = await runProgram('tar', ['-tzf', tarball], { cwd: root })
  return stdout
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''))
}

/** By path below node_modules: the version of each package that is there. */
export async function versionsBelow(folder: string, within = ''): Promise<Map<string, string>> {
  const versions = new Map<string, string>()
  const modules = join(folder, within, 'node_modules')
  const names = await readdir(modules).catch(() => [])
  const packages = await Promise.all(
    names
      .filter((name) => !name.startsWith('.'))
      .map(async (name) =>
        name.startsWith('@')
          ? (await readdir(join(modules, name))).map((inner) => `${name}/${inner}`)
          : [name],
      ),
  )
  for (const name of packages.flat()) {
    const path = join(within, 'node_modules', name)
    const manifest = JSON.parse(await readFile(join(folder, path, 'package.json'), 'utf8')) as {
      version: string
    }
    versions.set(path, manifest.version)
    for (const [inner, innerVersion] of await versionsBelow(folder, path)) versions.set(inner, innerVersion)
  }
  return versions
}
