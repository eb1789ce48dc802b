// control-spool.ts: what an operator does with the spool of the running daemon, over HTTP. Who may:
// control-routes.ts.
//
//   POST /control/spool/snapshot?to=DIR                 writes a snapshot into DIR, an absolute path
//   POST /control/spool/assign-lane?lane=N&provider=P   gives a lane whose provider is lost to a provider

import { isAbsolute } from 'node:path'
import { quote } from '../../std/quote.ts'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import type { StageViews } from '../types.ts'
import { badRequest, ok, type JsonAnswer } from './json-answer.ts'

const act = 'Nothing was changed.'

type SpoolWork = NonNullable<StageViews['spoolWork']>

/** Null where there is nothing of this name. `providers`: those of the config. */
export async function changeSpool(
  spool: SpoolWork,
  name: string,
  { query, providers }: { query: URLSearchParams; providers: readonly string[] },
  signal: AbortSignal,
): Promise<JsonAnswer | null> {
  switch (name) {
    case 'snapshot': {
      const to = query.get('to') ?? ''
      if (!isAbsolute(to)) return badRequest('`to` must be an absolute path.', act)
      return ok(await spool.snapshot(to, signal))
    }
    case 'assign-lane':
      return assignLane(spool, query, providers)
    default:
      return null
  }
}

async function assignLane(
  spool: SpoolWork,
  query: URLSearchParams,
  providers: readonly string[],
): Promise<JsonAnswer> {
  const lane = query.get('lane') ?? ''
  const provider = query.get('provider') ?? ''
  if (!/^[1-9]\d{0,9}$/.test(lane)) return badRequest('`lane` must be the number of a lane.', act)
  if (!providers.includes(provider)) {
    const names = providers.map((known) => quote(known, 64)).join(', ')
    return badRequest(
      `The provider ${quote(provider, 64)} is not in the config of the daemon: ${names}.`,
      act,
    )
  }
  const payloads = await spool.assignLane(Number(lane) as LaneId, provider as ProviderName)
  return ok({ lane: Number(lane), provider, payloads })
}
