// doctor-finding.ts: the result of one check of `doctor`, and how it is printed.

import type { ConnectionStep } from '../../delivery/delivery.ts'
import type { Status } from '../../ops/ops.ts'
import { visible } from '../../std/quote.ts'

export type DoctorFinding = {
  name: string
  /** `warning`: works, and a person should change it. `skipped`: cannot be checked here, `what` says why. */
  state: 'ok' | 'warning' | 'failed' | 'skipped'
  what: string
  why?: string
  /** The cure. */
  act?: string
  /** Providers that the check is about; missing where it is about none. */
  providers?: readonly string[]
}

/** The daemon that runs with the config. */
export type RunningDaemon = { status: Status; isLocal: boolean }

const nameColumns = 12

/** One line, with the cure. `several`: the config has more than one provider. */
export function findingLine(
  { name, state, what, why, act, providers = [] }: DoctorFinding,
  several: boolean,
): string {
  const about = several && providers.length > 0 ? [`${providers.join(', ')}:`] : []
  const text = [...about, what, why, act].filter((part) => part !== undefined).join(' ')
  const line = text.replaceAll('\n', '; ')
  return `${state.padEnd(8)} ${name.padEnd(nameColumns)} ${visible(line)}\n`
}

export function fromStep(
  { name, ok, what, why, act }: Omit<ConnectionStep, 'name'> & { name: string },
  providers: readonly string[] = [],
): DoctorFinding {
  return {
    name,
    state: ok ? 'ok' : 'failed',
    what,
    ...(why === undefined ? {} : { why }),
    ...(act === undefined ? {} : { act }),
    providers,
  }
}
