// alerts-command.ts: `alerts`: the receivers of alerts. Where no daemon runs, a test is sent by the config.

import { GatewayError } from '../../std/gateway-error.ts'
import { groupCommand } from '../operation-command.ts'
import { printNote, type CommandIo } from '../terminal/terminal.ts'

export const alertsCommand = groupCommand('alerts', {}, { test: { byConfig: testByConfig } })

async function testByConfig(path: string, values: unknown, io: CommandIo): Promise<unknown> {
  printNote(io, 'No daemon answers: the test is sent by the config.')
  const { receiver = null } = values as { receiver?: string }
  // Loaded late: it brings the schema of every stage.
  const { checkedAlerts } = await import('./config-alerts.ts')
  const { alerts, testReceivers } = await checkedAlerts(path, io.env)
  const tests = await testReceivers({ name: receiver, signal: io.stop })
  if (tests !== null) return { tests }
  const names = [...alerts.receivers, ...alerts.heartbeats].map((one) => one.name)
  throw new GatewayError('USAGE', {
    what: 'There is no receiver of this name.',
    why: names.length === 0 ? 'The config has no receivers.' : `There are: ${names.join(', ')}.`,
    act: 'Give one of them, or none for all.',
  })
}
