// Lines for journald. The journal is here a file or a pipe whose device and inode are in JOURNAL_STREAM, as systemd puts
// those of its socket there.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, fstatSync, openSync, closeSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { journalMarks } from '../../src/std/journal.ts'
import { createLog } from '../../src/ops/logging/logging.ts'
import { newFolder } from '../support/folders.ts'
import { handClock } from '../support/ops-world.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

const placeOf = (fd: number) => {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return `${dev}:${ino}`
}

async function journalFile() {
  const path = join(await newFolder(), 'journal')
  const fd = openSync(path, 'w')
  return { fd, place: placeOf(fd), lines: () => readFileSync(path, 'utf8').split('\n').slice(0, -1) }
}

describe('a line of the log', () => {
  async function loggedWith(place: (own: string) => string) {
    const file = await journalFile()
    const stdout = createWriteStream('', { fd: file.fd })
    const log = createLog(
      { clock: handClock(), stdout, env: { JOURNAL_STREAM: place(file.place) } },
      { level: 'debug' },
    )
    log.write({ kind: 'gateway_stop_overdue', deadlineMs: 1000 })
    log.write({ kind: 'config_warning', what: 'One\u2028line.', advice: 'Read it.' })
    log.write({ kind: 'gateway_starting', version: '1', pid: 1, config: 'gateway.yaml' })
    stdout.end()
    await once(stdout, 'close')
    return file.lines()
  }

  test('has the priority of its level where standard output is the journal, and is JSON behind it', async () => {
    const lines = await loggedWith((own) => own)
    const parsed = lines.map((line) => [
      line.slice(0, 3),
      (JSON.parse(line.slice(3)) as { level: string }).level,
    ])
    expect(parsed).toEqual([
      ['<3>', 'error'],
      ['<4>', 'warn'],
      ['<6>', 'info'],
    ])
  })

  test.each([
    ['the journal is another stream, such as that of a parent', () => '8:1'],
    ['there is no journal', () => ''],
    ['the name of the journal is only the beginning of the own', (own: string) => own.slice(0, -1)],
  ])('has none where %s', async (_why, place) => {
    expect((await loggedWith(place)).map((line) => line[0])).toEqual(['{', '{', '{'])
  })
})

describe('priorities', () => {
  const stderrIs = { fd: 2 }
  const env = { JOURNAL_STREAM: placeOf(2) }

  test.each([
    ['fatal', '<2>a'],
    ['error', '<3>a'],
    ['warn', '<4>a'],
    ['info', '<6>a'],
    ['debug', '<7>a'],
    ['trace', '<7>a'],
  ] as const)('%s is %s', (level, marked) => {
    expect(journalMarks(stderrIs, env)?.(level, 'a')).toBe(marked)
  })

  test('each line of a text has it', () => {
    expect(journalMarks(stderrIs, env)?.('error', 'what\n  why\n\n')).toBe('<3>what\n<3>  why\n\n')
  })

  test('a stream without a file has none, and neither has one that is closed', async () => {
    const { fd, place } = await journalFile()
    closeSync(fd)
    expect(journalMarks({ fd }, { JOURNAL_STREAM: place })).toBeNull()
    expect(journalMarks({}, env)).toBeNull()
  })
})

describe('the process', () => {
  test(
    'marks each line of a refused config as an error on standard error, and nothing on a pipe beside it',
    { timeout: 90_000 },
    async () => {
      const config = join(await newFolder(), 'gateway.yaml')
      await writeFile(config, 'delivry: {}\nsorces: []\n')
      const { fd, place, lines } = await journalFile()
      const run = (words: string[], stderr: number | 'pipe') =>
        spawnSync(process.execPath, [main, ...words], {
          stdio: ['ignore', 'pipe', stderr],
          encoding: 'utf8',
          env: { ...process.env, JOURNAL_STREAM: place },
        })
      expect(run(['run', '--config', config], fd).status).toBe(2)
      const refused = lines()
      expect(refused.length).toBeGreaterThan(3)
      expect(refused.filter((line) => !line.startsWith('<3>'))).toEqual([])
      expect(run(['run', '--config', config], 'pipe').stderr).toMatch(/^CONFIG_INVALID\n {2}The config/)
      const misspelt = run(['run', '--confg', config], fd)
      expect([misspelt.status, lines().slice(refused.length)[0]]).toEqual([2, '<3>USAGE'])
    },
  )

  test('marks the text of a fault as critical', async () => {
    const { fd, place, lines } = await journalFile()
    const preload = "process.on('SIGUSR2', () => { void Promise.reject(new Error('boom')) })"
    const child = spawn(
      process.execPath,
      [
        `--import=data:text/javascript,${encodeURIComponent(preload)}`,
        main,
        'sandbox',
        '--listen',
        '127.0.0.1:0',
      ],
      { stdio: ['ignore', 'pipe', fd], env: { ...process.env, JOURNAL_STREAM: place } },
    )
    if (child.stdout) await once(child.stdout, 'data')
    child.kill('SIGUSR2')
    child.stdout?.resume()
    await once(child, 'exit')
    expect(lines()[0]).toMatch(/^<2>fatal: /)
    expect(lines().filter((line) => !line.startsWith('<2>'))).toEqual([])
  })

  test('runs as a daemon whose log has priorities on a socket that is the journal', async () => {
    const folder = await newFolder()
    const config = join(folder, 'gateway.yaml')
    const listen = 'listeners: [{ url: "mqtt://127.0.0.1:0" }]'
    await writeFile(
      config,
      `ingest: { broker: { ${listen}, access: { anonymous: true } } }
sources: [{ name: a, preset: simulator }]
spool: { path: ./spool, min_free_bytes: 1MiB }
delivery: { base_url: "http://127.0.0.1:9", credentials: { source: file, path: none.json } }
ops: { listen: "127.0.0.1:0" }
`,
    )
    // The socket of the output is made with the process, as the journal's is: only the process can name it.
    const script = `exec 3>&1; export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/3); exec 3>&- "$0" "$@"`
    const child = spawn('sh', ['-c', script, process.execPath, main, 'run', '--config', config], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let seen = ''
    for await (const chunk of child.stdout) {
      const wasReady = seen.includes('"gateway_ready"')
      seen += String(chunk)
      if (!wasReady && seen.includes('"gateway_ready"')) child.kill('SIGTERM')
    }
    const lines = seen.split('\n').filter(Boolean)
    const found = lines.map((line) => [
      line.slice(0, 3),
      (JSON.parse(line.slice(3)) as { level: string }).level,
    ])
    const expected = { error: '<3>', warn: '<4>', info: '<6>', debug: '<7>' } as Record<string, string>
    expect(found.length).toBeGreaterThan(1)
    expect(found.filter(([mark, level]) => mark !== expected[level ?? ''])).toEqual([])
  })
})
