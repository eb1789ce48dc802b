// frame.ts: answers a request with a view, in its frame. The state is read once for both.

import type { RouteRequest, TextAnswer } from '../http/http-routing/route.ts'
import type { JsonAnswer } from '../http/json-answer.ts'
import type { Status } from '../status-schema/status-schema.ts'
import { pageAnswer, type Frame, type Shown } from './layout.ts'

export type PageRequest<Values = unknown> = RouteRequest<Values>

/** A problem is shown by http-routing. */
export async function inFrame(
  request: PageRequest,
  view: (status: Status) => Promise<Shown | JsonAnswer> | Shown | JsonAnswer,
): Promise<TextAnswer | JsonAnswer> {
  const status = request.source.status() as Status
  const shown = await view(status)
  return 'value' in shown ? shown : pageAnswer(shown, frameOf(request, status))
}

function frameOf({ source, access }: PageRequest, status: Status): Frame {
  const held = source.stages.batches?.list({}, 1).groups.filter(({ state }) => state === 'held') ?? []
  return {
    ...status,
    heldBatches: held.reduce((sum, { batches }) => sum + batches, 0),
    user: access.user,
    hasUsers: access.hasUsers,
    token: access.token,
  }
}
