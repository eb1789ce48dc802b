import { describe, expect, test } from 'vitest'
import { readVersion } from '../../src/cli/terminal/package-version.ts'
import { runCli } from '../support/cli-world.ts'

describe('the command line', () => {
  test('--version prints the name of the build', async () => {
    expect(await runCli(['--version'])).toEqual({ status: 0, stdout: `${readVersion()}\n`, stderr: '' })
  })

  test('--help names every command and the exit statuses', async () => {
    const { status, stdout } = await runCli(['--help'])
    expect(status).toBe(0)
    for (const word of ['check', 'status', 'docs', 'Exit status']) expect(stdout).toContain(word)
  })

  test('a command has its own help, also with `help COMMAND`', async () => {
    const { status, stdout } = await runCli(['check', '--help'])
    expect(status).toBe(0)
    expect(stdout).toContain('--connect')
    expect(await runCli(['help', 'check'])).toEqual({ status: 0, stdout, stderr: '' })
  })

  test.each([
    [['chek'], "unknown command 'chek'"],
    [['check'], "required option '--config <file>'"],
    [['status', '--jsn'], "unknown option '--jsn'"],
    [['status', 'extra'], 'too many arguments'],
    [['--wrong'], "unknown option '--wrong'"],
    [[], 'Usage:'],
  ])('wrong usage is status 2 with a hint: %j', async (argv, hint) => {
    const { status, stdout, stderr } = await runCli(argv)
    expect([status, stdout]).toEqual([2, ''])
    expect(stderr).toContain(hint)
  })

  test.each([
    [['check', '--confg', 'x'], '--config'],
    [['spool', 'salvage', '--too', 'x'], '--to'],
    [['simulate', '--brokr', 'x'], '--broker'],
  ])('an unknown option is named before one that is missing: %j', async (argv, meant) => {
    const { status, stderr } = await runCli(argv)
    expect(status).toBe(2)
    expect(stderr).toContain(`unknown option '${argv.find((word) => word.startsWith('--'))}'`)
    expect(stderr).toContain(`Did you mean ${meant}?`)
    expect(stderr).not.toContain('required option')
  })

  test.each([
    [['check']],
    [['status', '--jsn']],
    [['nonsense']],
    [['map', '--topic', 'x']],
    [['map', '--preset', 'no-such-preset']],
    [['status', '--url', 'http://127.0.0.1:1']],
    [['tap', '--url', 'ftp://x']],
    [['dead-letters', 'requeue', 'f'.repeat(32), '--all']],
    [['check', '--config', '/nowhere.yaml']],
    [['simulate', '--broker', 'nonsense']],
  ])('an error beside --json is one JSON document: %j', async (argv) => {
    const { status, stdout, stderr } = await runCli([...argv, '--json'])
    expect(status).not.toBe(0)
    expect(stdout).toBe('')
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: expect.any(String), what: expect.any(String) },
    })
  })

  test('version prints the versions that a report needs', async () => {
    const version = readVersion()
    const text = await runCli(['version'])
    expect(text).toEqual({
      status: 0,
      stdout: `telemetry-gateway ${version}, Node ${process.version}, ${process.platform} ${process.arch}\n`,
      stderr: '',
    })
    expect(JSON.parse((await runCli(['version', '--json'])).stdout)).toMatchObject({
      version,
      node: process.version,
    })
  })

  test('a topic of a message has no wildcard', async () => {
    for (const topic of ['a/#', '+/data'])
      expect((await runCli(['map', '--preset', 'simulator', '--topic', topic])).stderr).toMatch(
        /^USAGE\n.*has a wildcard/,
      )
  })

  test('a directory to write into is no stdout', async () => {
    for (const argv of [
      ['learn', '--broker', 'mqtt://127.0.0.1:1', '--to', '-'],
      ['spool', 'snapshot', '--to', '-'],
      ['spool', 'salvage', '--to', '-'],
    ])
      expect(await runCli(argv)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('Give a directory'),
      })
  })

  test.each([
    [['dead-letters', 'requeue', '5', '--all'], 'Ids are given together with --all.'],
    [
      ['dead-letters', 'requeue', '--file', 'a', '--device', 'b'],
      '--file is given together with ids, a filter',
    ],
    [['dead-letters', 'purge', '--all', '--device', 'a'], '--device and --all are given together.'],
    [['batches', 'retry', 'a', '--all'], 'BatchIds are given together with --all.'],
    [['batches', 'drop', '--all', '--provider', 'a'], 'A filter and --all are given together.'],
    [['quarantine', 'drop', '--all', '--device', 'a', '--reason', 'b'], 'Both --device and --all are given.'],
    [['learn', '--broker', 'mqtt://127.0.0.1:1', '--topic', 'a/#/b'], 'Give a topic filter'],
    [['learn', '--broker', 'mqtt://127.0.0.1:1', '--topic', 'a+'], 'Give a topic filter'],
    [['map', '--preset', 'simulator', '--topic', ''], 'The topic is empty.'],
    [['spool', 'repair', '--path', 'a', '--backup', '-'], 'Give a directory'],
    [['sandbox', '--listen', '127.0.0.1:0', '--accepted', '-'], 'Give a file'],
  ])('refuses what contradicts itself or cannot be meant: %j', async (argv, why) => {
    const { status, stdout, stderr } = await runCli(argv)
    expect([status, stdout]).toEqual([2, ''])
    expect(stderr).toContain(why)
  })

  test('beside --json everything on stderr is JSON, also a note before an error', async () => {
    const { status, stderr } = await runCli(['map', '--preset', 'simulator', '--json', '/nope'])
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object)
    expect(status).toBe(1)
    expect(lines).toMatchObject([
      { note: expect.stringContaining('topic') },
      { error: { code: 'INPUT_UNREADABLE' } },
    ])
  })

  test.each(['statsu', 'toString'])('help names a command that does not exist: %s', async (name) => {
    const { status, stderr } = await runCli(['help', name])
    expect(status).toBe(2)
    expect(stderr).toContain(`unknown command '${name}'`)
  })

  test('a file named - is stdin', async () => {
    const mapped = await runCli(['map', '--preset', 'simulator', '--topic', 'a', '-'], { stdin: '{}' })
    expect(mapped.stdout).toContain('NO_SOURCE')
    const faults = await runCli(['devices', 'import', '-', '--config', 'config/examples/gateway.yaml'], {
      stdin: 'nonsense',
    })
    expect(faults.stderr).toContain('unknown column "nonsense"')
  })

  test('a misspelt command gets a suggestion', async () => {
    expect((await runCli(['statsu'])).stderr).toContain('Did you mean status?')
  })
})
