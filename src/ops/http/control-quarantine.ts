// control-quarantine.ts: decisions about quarantined messages over HTTP. Who may: control-routes.ts.
//
//   POST /control/quarantine/release?device=&id=&all=1&restamp=1    device, id or both, or all=1
//   POST /control/quarantine/drop?device=&id=&all=1&reason=&yes=1   all=1 needs a reason; without `yes` a
//                                                                   report only
//
// Without a selection nothing is selected.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { StageViews } from '../types.ts'
import { badRequest, faultAnswer, ok, type JsonAnswer } from './json-answer.ts'

const known: Record<string, readonly string[]> = {
  release: ['device', 'id', 'all', 'restamp'],
  drop: ['device', 'id', 'all', 'reason', 'yes'],
}

/** Null where there is nothing of this name. */
export async function changeQuarantine(
  quarantine: NonNullable<StageViews['quarantine']>,
  name: string,
  params: URLSearchParams,
  signal: AbortSignal,
): Promise<JsonAnswer | null> {
  const keys = known[name]
  if (keys === undefined) return null
  const problem = problemIn(params, keys) ?? (name === 'drop' ? problemOfDrop(params) : null)
  if (problem !== null) return badRequest(problem, `The parameters are ${keys.join(', ')}.`)
  const reason = params.get('reason')
  const which = { device: params.get('device'), id: params.get('id'), ...(reason !== null && { reason }) }
  const flag = (key: string) => params.get(key) === '1'
  try {
    return ok(
      name === 'release'
        ? await quarantine.release(which, { restamp: flag('restamp') }, signal)
        : await quarantine.drop(which, { dryRun: !flag('yes') }, signal),
    )
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'DAEMON_REFUSED') throw error
    return faultAnswer(422, error)
  }
}

/** A command for all messages says which kind it means. */
function problemOfDrop(params: URLSearchParams): string | null {
  return params.get('all') === '1' && !params.has('reason') ? 'all needs a reason.' : null
}

function problemIn(params: URLSearchParams, keys: readonly string[]): string | null {
  for (const key of params.keys()) if (!keys.includes(key)) return `Unknown parameter ${quote(key, 40)}.`
  for (const key of ['all', 'restamp', 'yes']) {
    const value = params.get(key) ?? '0'
    if (value !== '0' && value !== '1') return `${key} must be 0 or 1, found ${quote(value, 40)}.`
  }
  const named = params.has('device') || params.has('id')
  if (params.has('id') && params.get('all') === '1') return 'id and all exclude each other.'
  return named || params.get('all') === '1' ? null : 'The request selects no messages.'
}
