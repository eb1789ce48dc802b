import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'

const source = (path: string) => new URL(`../../src/${path}`, import.meta.url).pathname

describe('the command line', () => {
  test('--version prints the version of package.json', async () => {
    const manifest = JSON.parse(readFileSync(source('../package.json'), 'utf8')) as { version: string }
    expect(await runCli(['--version'])).toEqual({ status: 0, stdout: `${manifest.version}\n`, stderr: '' })
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
    const { version } = JSON.parse(readFileSync(source('../package.json'), 'utf8')) as { version: string }
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

  test('a misspelt command gets a suggestion', async () => {
    expect((await runCli(['statsu'])).stderr).toContain('Did you mean status?')
  })
})
