// control-quarantine.ts: what a person decides about messages in quarantine, over HTTP; see control.ts for who may.
//
//   POST /control/quarantine/release?device=&id=&all=1&restamp=1    device, id or both, or all=1
//   POST /control/quarantine/drop?device=&id=&yes=1                 device, id or both; without `yes` it says what would go
//
// Nothing said does not mean everything.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { ControlAnswer } from './control.ts'
import type { StageViews } from '../types.ts'

type Verdicts = NonNullable<StageViews['quarantine']>

const known: Record<string, readonly string[]> = {
  release: ['device', 'id', 'all', 'restamp'],
  drop: ['device', 'id', 'yes'],
}

/** Null where there is nothing of this name. */
export async function answerQuarantine(
  verdicts: Verdicts,
  name: string,
  params: URLSearchParams,
  signal: AbortSignal,
): Promise<ControlAnswer | null> {
  const keys = known[name]
  if (keys === undefined) return null
  const why = wrongIn(params, keys)
  if (why !== null)
    return {
      status: 400,
      value: { what: 'The request is not understood.', why, act: `Ask with ${keys.join(', ')}.` },
    }
  const which = { device: params.get('device'), id: params.get('id') }
  const flag = (key: string) => params.get(key) === '1'
  try {
    const value =
      name === 'release'
        ? await verdicts.release(which, { restamp: flag('restamp') }, signal)
        : await verdicts.drop(which, { dryRun: !flag('yes') }, signal)
    return { status: 200, value }
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'DAEMON_REFUSED') throw error
    const { code, what, why: because, act } = error
    return { status: 422, value: { code, what, why: because, act } }
  }
}

function wrongIn(params: URLSearchParams, keys: readonly string[]): string | null {
  for (const key of params.keys()) if (!keys.includes(key)) return `There is no ${quote(key, 40)}.`
  for (const key of ['all', 'restamp', 'yes']) {
    const value = params.get(key) ?? '0'
    if (value !== '0' && value !== '1') return `${key} is 0 or 1; found ${quote(value, 40)}.`
  }
  const named = params.has('device') || params.has('id')
  if (named && params.get('all') === '1' && params.has('id')) return 'One message is not all of them.'
  if (named || params.get('all') === '1') return null
  return 'It does not say which messages are meant.'
}
