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

  test('a misspelt command gets a suggestion', async () => {
    expect((await runCli(['statsu'])).stderr).toContain('Did you mean status?')
  })
})
