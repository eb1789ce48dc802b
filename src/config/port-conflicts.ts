// port-conflicts.ts: finds a port that two listeners of a config would use. The second one could not start,
// or in the worst case would take the connections of the first.

import { isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'
import { defaultPortOf } from '../ingest/config.ts'
import type { ConfigProblem } from '../std/config-problem.ts'

/** Reads what it needs, so that problems of other options do not hide these. */
const placesSchema = z.object({
  ingest: z.object({ broker: z.object({ listeners: z.array(z.unknown()).nullish() }).nullish() }).nullish(),
  ops: z.object({ listen: z.string().nullish() }).nullish(),
})

type Place = { keys: (string | number)[]; host: string; port: number }

const defaultListener = { url: 'mqtt://127.0.0.1:1883' }
const defaultOps = '127.0.0.1:8080'

export function checkPorts(written: unknown): readonly ConfigProblem[] {
  const { data } = placesSchema.safeParse(written)
  if (data === undefined) return []
  const listeners = data.ingest?.broker?.listeners ?? [defaultListener]
  const places = [
    ...listeners.map((listener, index) =>
      placeOf((Object(listener) as { url?: unknown }).url, ['ingest', 'broker', 'listeners', index, 'url']),
    ),
    placeOf(`http://${data.ops?.listen ?? defaultOps}`, ['ops', 'listen']),
  ].filter((place) => place !== null)
  return places.flatMap((place, index): ConfigProblem[] => {
    const other = places.slice(0, index).find((before) => isSame(before, place))
    if (other === undefined) return []
    const message = `must have a port of its own: ${nameOf(other)} uses port ${other.port}, too.`
    return [{ path: place.keys, message }]
  })
}

/** Null for what is no address, which the schema reports, and for a port that the system chooses. */
function placeOf(url: unknown, keys: Place['keys']): Place | null {
  const match = /^(\w+):\/\/(?:\[([^\]]+)\]|([^\s:/@?#[\]]+))(?::(\d{1,5}))?(?:\/.*)?$/.exec(String(url))
  const host = match?.[2] ?? match?.[3]
  if (host === undefined) return null
  const port = Number(match?.[4] ?? defaultPortOf(match?.[1]))
  return port === 0 ? null : { keys, host: host.toLowerCase(), port }
}

function isSame(one: Place, other: Place): boolean {
  if (one.port !== other.port) return false
  if (one.host === other.host) return true
  return covers(one.host, other.host) || covers(other.host, one.host)
}

/** Whether listening on `wide` takes the port of `host`, too. */
function covers(wide: string, host: string): boolean {
  if (wide === '::') return true
  if (wide === '0.0.0.0') return !isIPv6(host)
  return wide === 'localhost' && (host === '::1' || (isIPv4(host) && host.startsWith('127.')))
}

function nameOf({ keys }: Place): string {
  return keys
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : index === 0 ? key : `.${key}`))
    .join('')
}
