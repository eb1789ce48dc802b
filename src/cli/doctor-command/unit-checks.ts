// unit-checks.ts: the systemd unit of the daemon: whether it is there, starts at boot, was restarted, and
// whether its limits fit the config.

import { formatDuration, plural } from '../../std/quantity.ts'
import { openFilesWarnings, type Config } from '../../config/config.ts'
import { memoryWarning } from '../check-command/memory-limits.ts'
import { readUnit, serviceUnit as unit, type UnitProperties } from '../daemon-client/service-unit.ts'
import type { Finding } from '../check-command/connection-findings.ts'

const name = 'systemd'
const properties = [
  'LoadState',
  'ActiveState',
  'SubState',
  'Result',
  'UnitFileState',
  'NeedDaemonReload',
  'NRestarts',
  'LimitNOFILE',
  'TimeoutStopUSec',
] as const

/** `config`: null where it is invalid. `willStart`: it starts next, so how it is now does not count. */
export async function checkUnit(
  config: Config | null,
  { env, willStart }: { env: NodeJS.ProcessEnv; willStart: boolean },
): Promise<Finding[]> {
  const skipped = (what: string): Finding[] => [{ name, state: 'skipped', what }]
  const found = await readUnit(env, properties)
  if (found === null) return skipped('systemd does not answer on this machine.')
  if (found.get('LoadState') === 'not-found') return skipped(`There is no unit ${unit}.`)
  const problems = [
    ...(willStart ? [] : stateProblems(found)),
    ...fileProblems(found),
    ...(config === null ? [] : [...limitProblems(found, config), ...(await memoryProblems(config))]),
  ]
  if (problems.length > 0) return problems
  const state = willStart
    ? 'can start with this config'
    : `is ${found.get('ActiveState')} (${found.get('SubState')}) and starts at boot`
  return [{ name, state: 'ok', what: `The unit ${unit} ${state}.` }]
}

function stateProblems(found: UnitProperties): Finding[] {
  const problems: Finding[] = []
  const add = (state: Finding['state'], what: string, act: string) =>
    problems.push({ name, state, what, act })
  const log = `See \`journalctl -u ${unit} -n 50\`.`
  const active = found.get('ActiveState')
  if (active === 'failed') add('failed', `The unit ${unit} has failed: ${found.get('Result')}.`, log)
  else if (active === 'inactive')
    add('warning', `The unit ${unit} is not started.`, `Run \`systemctl start ${unit}\`.`)
  else if (active !== 'active')
    add('warning', `The unit ${unit} is ${active} (${found.get('SubState')}).`, log)
  if (found.get('UnitFileState') === 'disabled')
    add('warning', 'The daemon does not start at boot.', `Run \`systemctl enable ${unit}\`.`)
  const restarts = Number(found.get('NRestarts') ?? 0)
  if (restarts > 0)
    add('warning', `systemd restarted the daemon ${plural(restarts, 'time')} since it was started.`, log)
  return problems
}

function fileProblems(found: UnitProperties): Finding[] {
  if (found.get('NeedDaemonReload') !== 'yes') return []
  const what = 'The unit file was changed and is not in force.'
  return [{ name, state: 'warning', what, act: 'Run `systemctl daemon-reload`.' }]
}

function limitProblems(found: UnitProperties, config: Config): Finding[] {
  const { ops } = config
  // `infinity` is none.
  const files = Number.parseInt(found.get('LimitNOFILE') ?? '', 10) || Infinity
  const problems: Finding[] = openFilesWarnings(config, files).map((warning) => ({
    name,
    state: 'warning',
    ...warning,
  }))
  const stopMs = durationIn(found.get('TimeoutStopUSec') ?? '')
  if (stopMs !== null && stopMs <= ops.stop_deadline)
    problems.push({
      name,
      state: 'warning',
      what: `TimeoutStopSec of the unit is ${formatDuration(stopMs)}, ops.stop_deadline is ${formatDuration(ops.stop_deadline)}.`,
      why: 'systemd kills the daemon before it has stopped in order.',
      act: `Set TimeoutStopSec above it with \`systemctl edit ${unit}\`.`,
    })
  return problems
}

async function memoryProblems(config: Config): Promise<Finding[]> {
  const warning = await memoryWarning(config)
  return warning === null ? [] : [{ name, state: 'warning', ...warning }]
}

const unitsMs: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `1min 30s`, as systemd writes it. Null: no limit, or another form. */
function durationIn(text: string): number | null {
  let ms = 0
  for (const word of text.split(' ')) {
    const [, amount, unitName = ''] = /^(\d+(?:\.\d+)?)([a-z]+)$/.exec(word) ?? []
    const unitMs = Object.hasOwn(unitsMs, unitName) ? unitsMs[unitName] : undefined
    if (amount === undefined || unitMs === undefined) return null
    ms += Number(amount) * unitMs
  }
  return ms
}
