// alerts-command.ts: `alerts`: list the receivers of alerts, and send a test through them. Exit status of
// `test`: 1 where a receiver did not take it.

import { Command } from 'commander'
import { GatewayError } from '../../std/gateway-error.ts'
import type { IsoTimes } from '../../std/iso-times.ts'
import { formatDuration } from '../../std/quantity.ts'
import type { AlertReceiverView, AlertTest } from '../../alerts/types.ts'
import { requestByOptions, withDaemonOptions, type DaemonOptions } from '../daemon-client/daemon-options.ts'
import { isUnreachable } from '../daemon-client/spool-access.ts'
import { columns } from '../terminal/text-table.ts'
import { printAnswer, printNote, type BuildCommand, type CommandIo } from '../terminal/terminal.ts'
import { agoSince, notes, listsByDefault } from '../terminal/text-format.ts'

type Listed = { receivers: IsoTimes<AlertReceiverView>[] }
type Tested = { tests: readonly AlertTest[] }

export const alertsCommand: BuildCommand = (io, done) =>
  new Command('alerts')
    .addCommand(listCommand(io, done), { isDefault: true })
    .addCommand(testCommand(io, done))
    .addHelpText('after', listsByDefault('alerts'))

const listCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('list'))
    .description('List the receivers of alerts: last sent, last failure, what waits.')
    .action(async (options: DaemonOptions) => {
      const request = { path: '/alerts', method: 'GET', timeoutMs: 10_000 } as const
      printAnswer(io, options, (await requestByOptions(options, io, request)) as Listed, listText)
      done(0)
    })

const testCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('test'))
    .description('Send a test through each receiver, and say what happened.')
    .argument('[receiver]', 'only through this receiver or heartbeat')
    .addHelpText(
      'after',
      notes(
        'The running daemon sends the test. Without one, the command sends it by the config of --config.',
        'Exit status 1: a receiver did not take it.',
      ),
    )
    .action(async (receiver: string | undefined, options: DaemonOptions) => {
      const answer = await test(receiver ?? null, options, io)
      printAnswer(io, options, answer, testText)
      done(answer.tests.every(({ ok }) => ok) ? 0 : 1)
    })

async function test(receiver: string | null, options: DaemonOptions, io: CommandIo): Promise<Tested> {
  const query = receiver === null ? '' : `?${new URLSearchParams({ receiver }).toString()}`
  const path = `/control/alerts/test${query}`
  try {
    const request = { path, method: 'POST', timeoutMs: Infinity } as const
    return (await requestByOptions(options, io, request)) as Tested
  } catch (error) {
    if (!isUnreachable(error) || options.config === undefined) throw error
    printNote(io, 'No daemon answers: the test is sent by the config.')
    return testByConfig(options.config, receiver, io)
  }
}

async function testByConfig(path: string, name: string | null, { env, stop }: CommandIo): Promise<Tested> {
  // Loaded late: it brings the schema of every stage.
  const { checkedAlerts } = await import('./config-alerts.ts')
  const { alerts, testReceivers } = await checkedAlerts(path, env)
  const tests = await testReceivers({ name, signal: stop })
  if (tests !== null) return { tests }
  const names = [...alerts.receivers, ...alerts.heartbeats].map((one) => one.name)
  throw new GatewayError('USAGE', {
    what: 'There is no receiver of this name.',
    why: names.length === 0 ? 'The config has no receivers.' : `There are: ${names.join(', ')}.`,
    act: 'Give one of them, or none for all.',
  })
}

const noReceivers =
  'There are no receivers of alerts. Add some in the section `alerts` of the config: docs/alerts.md.\n'

function listText({ receivers }: Listed, width: number): string {
  if (receivers.length === 0) return noReceivers
  const now = Date.now()
  const ago = (at: string | null) => (at === null ? '-' : agoSince(at, now))
  const rows = receivers.map((one) => [
    one.name,
    one.type,
    one.target,
    ago(one.lastSentAt),
    one.heldBack === null ? String(one.waiting) : `${one.waiting}, until ${one.heldBack.untilAt}`,
    one.failures === 0 ? '-' : `${one.failures} in a row`,
  ])
  const failing = receivers
    .filter(({ failures }) => failures > 0)
    .map(({ name, lastFailure, nextTryAt }) => {
      const wait = nextTryAt === null ? 0 : Math.max(0, Date.parse(nextTryAt) - now)
      return `${name}: ${lastFailure ?? ''}. Next try ${wait < 1000 ? 'now' : `in ${formatDuration(wait)}`}.`
    })
  const table = columns(
    [['receiver', 'type', 'target', 'last sent', 'waiting', 'failed tries'], ...rows],
    width,
  )
  return `${[...table, ...(failing.length > 0 ? ['', ...failing] : [])].join('\n')}\n`
}

function testText({ tests }: Tested): string {
  if (tests.length === 0) return noReceivers
  return tests
    .map(({ name, type, target, ok, detail, act, tookMs }) => {
      const head = `${ok ? 'ok    ' : 'failed'} ${name} (${type} ${target}), ${formatDuration(tookMs)}`
      return [head, `         ${detail}`, ...(act === null ? [] : [`         ${act}`])].join('\n')
    })
    .join('\n')
    .concat('\n')
}
