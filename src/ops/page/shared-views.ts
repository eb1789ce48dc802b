// shared-views.ts: views that walk through all devices are made once for all browsers that ask within
// `sharedMs`: the browsers of a depot read them again and again, and at the same moments. What is shared is
// the same for all users: no token, and no button that needs a right.

import type { EpochMs } from '../../std/clock.ts'
import type { HttpSource } from '../http/http-routing/route.ts'

const sharedMs = 2000
/** The oldest one is forgotten. */
const viewsMax = 16

type Made = { at: EpochMs; made: Promise<unknown> }

/** By the gateway, because a test has several in one process. */
const shared = new WeakMap<HttpSource, Map<string, Made>>()

/** `key`: the view with its parameters. What fails is not kept. */
export function sharedView<Shown>(
  source: HttpSource,
  key: string,
  make: () => Promise<Shown>,
): Promise<Shown> {
  const views = shared.get(source) ?? new Map<string, Made>()
  shared.set(source, views)
  const now = source.now()
  const known = views.get(key)
  const ageMs = known === undefined ? Infinity : now - known.at
  // The clock may have been set back.
  if (known !== undefined && ageMs >= 0 && ageMs < sharedMs) return known.made as Promise<Shown>
  const made = make()
  views.delete(key)
  views.set(key, { at: now, made })
  made.catch(() => views.delete(key))
  const [oldest] = views.keys()
  if (views.size > viewsMax && oldest !== undefined) views.delete(oldest)
  return made
}
