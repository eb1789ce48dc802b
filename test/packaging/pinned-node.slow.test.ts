import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../support/folders.ts'

const root = resolve(import.meta.dirname, '../..')
const launcher = join(root, 'src/pinned-node.js')
const pinnedPath = join(root, `node_modules/node-linux-${process.arch}/bin/node`)

/** A Node of the machine, of any version but the pinned one. */
const otherNode = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) => existsSync(path) && versionOf(path) !== process.version,
)
const tooOld = otherNode !== undefined && /^v(1\d|20|21)\./.test(versionOf(otherNode))

function versionOf(path: string): string {
  return spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.trim()
}

/** A folder as an installation: pinned-node.js in src, and packages that the test puts there. */
async function installation(): Promise<{ folder: string; file: string }> {
  const folder = await newFolder()
  mkdirSync(join(folder, 'src'))
  const file = join(folder, 'src/pinned-node.js')
  copyFileSync(launcher, file)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  return { folder, file }
}

function run(node: string, file: string, ...args: string[]) {
  return spawnSync(node, [file, ...args], { encoding: 'utf8' })
}

test('every npm script runs its programs on the pinned Node', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const commands = Object.values(scripts).flatMap((script) => script.split(' && '))
  const allowed = /^(HOSTS=all |exec )?node src\/pinned-node\.js |^npm run |^(rm|cp|echo) /
  expect(commands.filter((command) => !allowed.test(command))).toEqual([])
})

describe.skipIf(otherNode === undefined)('started by another Node', () => {
  const node = otherNode ?? ''

  test('a file runs on the pinned Node, and so does each `node` that it starts', async () => {
    const { folder, file } = await installation()
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const program = join(folder, 'versions.ts')
    writeFileSync(
      program,
      `import { execFileSync } from 'node:child_process'
      const inner: string = execFileSync('node', ['--version'], { encoding: 'utf8' }).trim()
      console.log(process.version, inner, process.argv.slice(2).join(' '))`,
    )
    const { stdout } = run(node, file, program, 'one', '--two')
    expect(stdout.trim()).toBe(`${process.version} ${process.version} one --two`)
  })

  test('a program of the packages runs on the pinned Node', () => {
    const { stdout } = run(node, launcher, 'vitest', '--version')
    expect(stdout).toContain(`node-${process.version}`)
  })

  test('the exit status is that of the program', () => {
    const { status, stderr } = run(node, launcher, join(root, 'src/main.ts'), 'nonsense')
    expect([status, stderr]).toEqual([2, expect.stringContaining('nonsense')])
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s reaches the program', async (signal) => {
    const { folder, file } = await installation()
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const program = join(folder, 'waits.js')
    writeFileSync(
      program,
      `process.on('${signal}', () => { console.log('heard'); process.exit(7) })
      setInterval(() => {}, 1000); console.log('waits')`,
    )
    const child = spawn(node, [file, program])
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const heard = once(child.stdout, 'data')
    child.kill(signal)
    expect(String((await heard)[0])).toBe('heard\n')
    expect(await once(child, 'exit')).toEqual([7, null])
  })

  test('a program that a signal ends, ends the launcher by the same signal', async () => {
    const { folder, file } = await installation()
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const program = join(folder, 'ends.js')
    writeFileSync(program, `process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`)
    expect(run(node, file, program)).toMatchObject({ status: null, signal: 'SIGTERM' })
  })

  test.runIf(tooOld)('without the pinned Node it says which Node is needed and how to get it', async () => {
    const { file } = await installation()
    const { status, stderr } = run(node, file, 'src/main.ts', 'trial')
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^NODE_TOO_OLD\n {2}This is Node \d/)])
    for (const words of ['22.19', 'npm ci', 'https://nodejs.org']) expect(stderr).toContain(words)
    const json = run(node, file, 'src/main.ts', 'status', '--json')
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'NODE_TOO_OLD' } })
  })

  test.runIf(tooOld)(
    'a pinned Node that cannot start, for another C library, counts as missing',
    async () => {
      const { folder, file } = await installation()
      const bin = join(folder, `node_modules/node-linux-${process.arch}/bin`)
      mkdirSync(bin, { recursive: true })
      writeFileSync(join(bin, 'node'), '#!/lib/ld-of-another-c-library.so\n', { mode: 0o755 })
      const { status, stderr } = run(node, file, join(root, 'src/main.ts'))
      expect([status, stderr]).toEqual([2, expect.stringContaining('NODE_TOO_OLD')])
    },
  )
})

test('where there is no pinned Node, one that is new enough runs the program itself', async () => {
  const { folder, file } = await installation()
  const program = join(folder, 'pid.js')
  writeFileSync(program, 'console.log(process.pid, process.argv.slice(2).join())')
  const { pid, stdout } = run(process.execPath, file, program, 'one')
  expect(stdout.trim()).toBe(`${pid} one`)
})

test('the pinned Node runs a program in its own process, as its main program', async () => {
  const { folder } = await installation()
  const program = join(folder, 'pid.ts')
  writeFileSync(program, 'console.log(process.pid, import.meta.main)')
  const { pid, stdout } = run(pinnedPath, launcher, program)
  expect(stdout.trim()).toBe(`${pid} true`)
})

test('a program that is not installed is an error that names the cure', () => {
  const { status, stderr } = run(process.execPath, launcher, 'no-such-program')
  expect([status, stderr]).toEqual([
    2,
    expect.stringMatching(/^PROGRAM_MISSING[^]*no-such-program[^]*npm ci/),
  ])
})
