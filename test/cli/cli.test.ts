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
})
