// command-tree.ts: the commands of the gateway with their options and help texts, for the manual page and the
// completions of the package. They come from the commands themselves, so a build cannot have old ones.

import { PassThrough } from 'node:stream'
import { Help, type Command } from 'commander'
import { wholeProgram } from '../../src/cli/cli.ts'

export type CommandHelp = {
  /** `spool snapshot`; empty for the program itself. */
  path: string
  summary: string
  usage: string
  options: readonly {
    term: string
    names: readonly string[]
    description: string
    value: 'none' | 'path' | 'other'
  }[]
  /** The lines under the options. */
  notes: readonly string[]
  children: readonly CommandHelp[]
}

/** Works in a checkout only. */
const notInstalled = new Set(['docs'])

export async function commandTree(): Promise<CommandHelp> {
  const { signal } = new AbortController()
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const nothing = () => undefined
  const io = { stdin, stdout, stderr, env: {}, stop: signal, onHangUp: nothing, endWithReader: nothing }
  return helpOf(await wholeProgram(io), [])
}

function helpOf(command: Command, path: readonly string[]): CommandHelp {
  const help = new Help()
  const options = [
    ...command.options,
    ...help.visibleOptions(command).filter(({ long }) => long === '--help'),
  ]
  return {
    path: path.join(' '),
    summary: command.description(),
    usage: help.commandUsage(command),
    options: options.map((option) => ({
      term: help.optionTerm(option),
      names: [option.short, option.long].filter((name) => name !== undefined && name !== null),
      description: help.optionDescription(option),
      value:
        !option.required && !option.optional
          ? 'none'
          : /<(file|dir|path)>/.test(option.flags)
            ? 'path'
            : 'other',
    })),
    notes: notesOf(command),
    children: command.commands
      .filter((child) => !notInstalled.has(child.name()))
      .map((child) => helpOf(child, [...path, child.name()])),
  }
}

/** Commander keeps the texts of addHelpText as listeners, so they are printed to be read. */
function notesOf(command: Command): string[] {
  let printed = ''
  const { writeOut } = command.configureOutput()
  command.configureOutput({ writeOut: (text) => void (printed += text) })
  command.outputHelp()
  if (writeOut !== undefined) command.configureOutput({ writeOut })
  return printed
    .slice(command.helpInformation().length)
    .trim()
    .split('\n')
    .filter((line) => line !== '')
}

/** All commands without subcommands, in the order of the help. */
export function leavesOf(tree: CommandHelp): CommandHelp[] {
  return tree.children.length === 0 ? [tree] : tree.children.flatMap(leavesOf)
}
