// The manual page and the completions that the package gets from the commands.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { commandTree, leavesOf, type CommandHelp } from '../../config/packaging/command-tree.ts'
import { bashCompletion, zshCompletion } from '../../config/packaging/completions.ts'
import { manualPage } from '../../config/packaging/manual-page.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

let tree: CommandHelp
beforeAll(async () => {
  tree = await commandTree()
})

const pathsOf = (help: CommandHelp) => leavesOf(help).map(({ path }) => path)

describe('the manual', () => {
  const manual = () => manualPage(tree, { version: '1.2.3', date: 1_790_000_000 })

  test('has each command of the help, but those for a checkout', async () => {
    const { stdout } = await runCli(['--help'])
    const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]*) /gm)].map(([, name = '']) => name)
    const inManual = tree.children.map(({ path }) => path)
    expect(listed.filter((name) => !inManual.includes(name))).toEqual(['docs', 'help'])
  })

  test('has the options and the notes of a command', () => {
    const [, section = ''] = /^\.SS "spool snapshot"\n([^]*?)\n\.S[SH]/m.exec(manual()) ?? []
    expect(section).toContain('.B \\-\\-to <dir>')
    expect(section).toContain('The ledger is not part of a snapshot.')
  })

  test('is the same when it is made again', async () => {
    expect(manualPage(await commandTree(), { version: '1.2.3', date: 1_790_000_000 })).toBe(manual())
  })

  test('starts no line with a point or an apostrophe that is not a request', () => {
    const requests = /^\.(TH|SH|SS|TP|PP|BR|RI|B|I|br|nf|fi)( |$)/
    expect(
      manual()
        .split('\n')
        .filter((line) => /^[.']/.test(line) && !requests.test(line)),
    ).toEqual([])
  })
})

describe('the completion of bash', () => {
  async function completed(...words: string[]): Promise<string[]> {
    const file = join(await newFolder(), 'completion')
    await writeFile(file, bashCompletion(tree))
    const script =
      'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _telemetry_gateway; printf "%s\\n" "${COMPREPLY[@]}"'
    const output = execFileSync('bash', ['-c', script, 'bash', file, 'telemetry-gateway', ...words], {
      encoding: 'utf8',
    })
    return output.split('\n').filter((word) => word !== '')
  }

  test('completes commands, subcommands and options', async () => {
    expect(await completed('doc')).toEqual(['doctor'])
    expect(await completed('spool', 's')).toEqual(['snapshot', 'salvage'])
    expect(await completed('spool', 'snapshot', '--pat')).toEqual(['--path'])
    expect(await completed('status', '--w')).toEqual(['--watch'])
  })

  test('completes paths behind options that take one, and nothing behind other values', async () => {
    expect(await completed('check', '--config', '/et')).toEqual(['/etc'])
    expect(await completed('map', '--topic', '/et')).toEqual([])
  })

  test('knows each command', () => {
    for (const path of pathsOf(tree)) expect(bashCompletion(tree)).toContain(`    '${path}') words='`)
  })
})

describe('the completion of zsh', () => {
  test('knows each command', () => {
    for (const path of pathsOf(tree)) expect(zshCompletion(tree)).toContain(`    '${path}') choices=(`)
  })

  test.skipIf(!existsSync('/usr/bin/zsh'))('is what zsh can read', async () => {
    const file = join(await newFolder(), '_telemetry-gateway')
    await writeFile(file, zshCompletion(tree))
    expect(execFileSync('/usr/bin/zsh', ['-n', file], { encoding: 'utf8' })).toBe('')
  })
})
