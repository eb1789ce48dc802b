// page-views.ts: the paths of the views. Entry file of this folder; each other file makes the HTML of one
// view, of values that the stages give.
//
// A view needs the right to read; those of whole dead letters and batches need a user, as /control does. What
// the stages cannot give yet is answered as a problem, which http-routing shows.

import { z } from 'zod'
import { isoTime } from '../../../std/clock.ts'
import { bounded } from '../../../std/quote.ts'
import type { HistorySpan } from '../../history/history.ts'
import { deviceOf, devicesOf, withHours } from '../../http/device-list.ts'
import { integer, metaOf, readParameters, requiredText, text } from '../../http/http-routing/parameters.ts'
import { parametersRefused } from '../../http/http-routing/request-refusals.ts'
import { route, type Route, type RouteRequest } from '../../http/http-routing/route.ts'
import { starting, type JsonAnswer, type TextAnswer } from '../../http/json-answer.ts'
import { quarantineOf, type QuarantineView } from '../../http/quarantine-view.ts'
import { deviceFilters } from '../../operations/device-operations.ts'
import type { ShownLedger } from '../../operations/ledger-operation.ts'
import { answerTo, effects, nowOf, refusedBy } from '../../operations/operation.ts'
import { operationNamed } from '../../operations/operations.ts'
import type { Right } from '../../http/request-rights/request-rights.ts'
import type { Status } from '../../status-schema/status-schema.ts'
import type { BatchDetail, BatchList } from '../../../delivery/types.ts'
import type { DeadLetterList } from '../../../dead-letters/types.ts'
import type { DeadLetter } from '../../../domain/dead-letter.ts'
import { inFrame, type PageRequest } from '../frame.ts'
import { html, type HtmlValue, type Html } from '../html.ts'
import { changes } from '../page-changes.ts'
import { blocksView } from '../shown-blocks.ts'
import { plotsSection } from '../history-plots.ts'
import { pageType, type Shown } from '../layout.ts'
import { sharedView } from '../shared-views.ts'
import { problemReport } from './change-page.ts'
import { deadLetterChanges, deadLetterFilter } from './dead-letters-page.ts'
import { deviceView } from './device-page.ts'
import { devicesView } from './devices-page.ts'
import { liveView } from './live-page.ts'
import { mapView, type Mapped } from './map-page.ts'
import { overviewOf } from './overview-page.ts'
import { refusedView } from './refused-page.ts'
import { searchForm } from './search-form.ts'
import { jsonText, link } from '../shown-values.ts'
import { paging } from '../table.ts'

const devicesPerPage = 50
const pastShown = 20

/** GET / answers it to browsers. */
export function overviewPage(
  request: PageRequest,
  span: HistorySpan = 'hour',
): Promise<TextAnswer | JsonAnswer> {
  return inFrame(request, (status) => ({
    title: 'Overview',
    path: '/',
    body: overviewOf(
      {
        status,
        past: request.source.past.past(pastShown).conditions,
        access: accessOf(request),
        hasReceivers: (request.source.stages.alerts?.receivers() ?? []).length > 0,
      },
      plotsSection(request.source.history(span)),
    ),
    isLive: true,
  }))
}

/** Views of one thing, below those that list it. */
const placeOf: Readonly<Record<string, string>> = {
  '/page/device': '/page/devices',
  '/page/dead-letter': '/page/dead-letters',
  '/page/batch': '/page/batches',
}

type ViewOf<Shape extends z.ZodRawShape> = {
  path: string
  summary: string
  right?: Right
  parameters: Shape
  /** Walks through all devices, and shows everybody the same: shared-views.ts. */
  isShared?: true
  shown(
    request: RouteRequest<z.output<z.ZodObject<Shape>>>,
    status: Status,
  ): Promise<Omit<Shown, 'path'> | JsonAnswer> | Omit<Shown, 'path'> | JsonAnswer
}

function view<Shape extends z.ZodRawShape>(of: ViewOf<Shape>): Route {
  const { path, summary, right = 'read', parameters, isShared = false, shown } = of
  return route({
    method: 'GET',
    path,
    summary,
    right,
    page: true,
    parameters: z.strictObject(parameters),
    answers: { 200: { means: 'The view.', contentType: pageType } },
    answer: (request) =>
      inFrame(request, async (status) => {
        const make = async () => shown(request, status)
        const key = `${path} ${JSON.stringify(request.values)}`
        const made = await (isShared ? sharedView(request.source, key, make) : make())
        return 'value' in made ? made : { path: placeOf[path] ?? path, ...made }
      }),
  })
}

const accessOf = ({ access }: PageRequest) => ({ canChange: access.mayChange && access.user !== null })

export const viewRoutes: readonly Route[] = [
  view({
    path: '/page/devices',
    summary: 'Shows all devices, those that need a person first.',
    isShared: true,
    parameters: {
      ...deviceFilters,
      from: integer('Number of the first one, from 0.', { min: 0, max: 10_000_000 }),
    },
    async shown({ source, values: { from = 0, sort = 'state', ...filter }, turn }) {
      const limit = from + devicesPerPage
      const list = await devicesOf(source.stages, { ...filter, limit, sort }, turn)
      if (list === null) return starting()
      const devices = await withHours(source.stages, list.devices.slice(from, limit), turn)
      const now = isoTime(source.ourNow())
      const body = devicesView({ ...list, now, filter, sort, from, perPage: devicesPerPage, devices })
      return { title: 'Devices', isLive: true, body }
    },
  }),
  view({
    path: '/page/device',
    summary: 'Shows one device: its state, its last messages, and what was kept of it.',
    parameters: { key: requiredText('The key of the device.') },
    async shown(request) {
      const { source, values } = request
      const { mapping, deadLetters } = source.stages
      const device = mapping?.device(values.key) ?? null
      if (!mapping || device === null)
        return deviceOf(source, { key: values.key, messages: false, explain: false, signal: request.signal })
      const body = deviceView({
        now: isoTime(source.ourNow()),
        device: { ...device, messagesByHour: mapping.messagesByHour(values.key) },
        ...(await mapping.messages(values.key, { explain: false }, request.signal)),
        deadLetters: (await deadLetters?.list({ device: values.key }, keptShown)) ?? null,
        quarantine: await quarantineOf(source, { device: values.key, limit: keptShown }),
        access: accessOf(request),
      })
      return { title: bounded(values.key, 100), isLive: true, body }
    },
  }),
  view({
    path: '/page/map',
    summary: 'Shows the last position of each device.',
    isShared: true,
    parameters: {},
    async shown({ source: { stages } }) {
      if (!stages.mapping) return starting()
      const positions: Mapped[] = []
      let without = 0
      for await (const slice of stages.mapping.devices()) {
        for (const { device, state, position } of slice) {
          if (position === null) without += 1
          else positions.push({ device, state, latitude: position.latitude, longitude: position.longitude })
        }
      }
      return { title: 'Map', isLive: true, body: mapView({ positions, without }) }
    },
  }),
  view({
    path: '/page/refused',
    summary: 'Shows the connections and messages that were refused in the last hour.',
    isShared: true,
    parameters: {},
    async shown({ source, turn }, status) {
      const list = await devicesOf(source.stages, { limit: 1000, state: 'refused', sort: 'state' }, turn)
      if (list === null) return starting()
      const body = refusedView({ now: isoTime(source.ourNow()), clients: list.clients, status })
      return { title: 'Refused connections', isLive: true, body }
    },
  }),
  operationView<DeadLetterList>('/page/dead-letters', 'dead-letters/list', {
    title: 'Dead letters',
    prints: ['ids'],
    asks: ['device', 'reason'],
    before({ scanned }, { given: { id, limit: _limit, ...selection }, access }) {
      const mayChange = scanned > 0 && id === undefined
      return html`${deadLetterFilter(selection)} ${mayChange && deadLetterChanges(selection, access)}`
    },
  }),
  operationView<{ deadLetter: DeadLetter }>('/page/dead-letter', 'dead-letters/show', {
    title: 'Dead letter',
    more({ deadLetter: { payload } }, { given: { id = '' }, access, token }) {
      const mayEdit = payload !== null && access.canChange
      return html`<h2>Change it</h2>
        ${changes(access, [
          { action: 'dead-letters/requeue', parameters: { id }, name: 'Requeue' },
          { action: 'dead-letters/purge', parameters: { id }, name: 'Purge' },
          ...(payload !== null && !mayEdit
            ? [{ action: 'dead-letters/edit', parameters: { id }, name: 'Edit' }]
            : []),
        ])}
        ${mayEdit && editForm(id, payload, token)}`
    },
  }),
  operationView<QuarantineView>('/page/quarantine', 'quarantine/list', {
    title: 'Quarantine',
    values: { limit: '500' },
    intro:
      'Messages of devices that are not listed are mapped as soon as the device table lists the device: open the ' +
      'device for the row and the command. For the others, a person decides about the clock.',
    before: ({ groups }, { access }) =>
      groups.some(({ reason }) => reason !== 'UNKNOWN_DEVICE') &&
      html`<h2>Change those with a time that is not trusted</h2>
        ${changes(access, [
          { action: 'quarantine/release', parameters: { all: 1 }, name: 'Release' },
          {
            action: 'quarantine/release',
            parameters: { all: 1, restamp: 1 },
            name: 'Release with the time of arrival',
          },
        ])}`,
  }),
  operationView<BatchList>('/page/batches', 'batches/list', {
    title: 'Batches',
    values: { limit: '200' },
    intro:
      'A held batch is not sent because of its own answers; a person decides. The others go on without it.',
    before: ({ batches }, { access }) =>
      batches.some(({ state }) => state === 'held') &&
      changes(access, [{ action: 'batches/retry', parameters: { all: 1 }, name: 'Retry all held batches' }]),
  }),
  operationView<BatchDetail>('/page/batch', 'batches/show', {
    title: 'Batch',
    before({ payloads }, { given: { id = '' }, access }) {
      const offer = (action: string, name: string) => ({
        action: `batches/${action}`,
        parameters: { id },
        name,
      })
      return html`<h2>Change it</h2>
        ${changes(access, [
          offer('retry', 'Retry under its batchId'),
          offer('reissue', 'Reissue under a new batchId'),
          ...(payloads > 1 ? [offer('split', 'Split')] : []),
          offer('mark-delivered', 'Mark delivered'),
          offer('drop', 'Drop'),
        ])}`
    },
  }),
  operationView<ShownLedger>('/page/ledger', 'ledger', {
    title: 'Ledger',
    asks: ['device', 'at', 'from', 'to', 'payload', 'batch', 'request', 'outcome'],
    more: ({ next }, { given }) =>
      paging({
        previous: null,
        next: next === null ? null : link('/page/ledger', { ...given, after: next }),
      }),
  }),
  operationView('/page/changes', 'audit', { title: 'Changes' }),
  view({
    path: '/page/live',
    summary: 'Shows messages as they come, raw and mapped.',
    parameters: {
      device: text('Only of this device.'),
      topic: text('Only of topics that match this filter.'),
      source: text('Only of this source.'),
    },
    shown: ({ values }) => ({ title: 'Live', hasTap: true, body: liveView(values) }),
  }),
]

const keptShown = 20

type Asked = {
  /** The parameters, as they are written. */
  given: Readonly<Record<string, string>>
  access: ReturnType<typeof accessOf>
  /** Of forms. */
  token: string | null
}

type OperationView<Answer> = {
  title: string
  /** Parameters of the operation; without them, the view takes them. */
  values?: Readonly<Record<string, string>>
  /** Flags of the command that are set. */
  prints?: readonly string[]
  intro?: string
  /** Parameters that a person fills into a form. */
  asks?: readonly string[]
  /** Of a list, also what can be changed: on a phone, a hundred rows are twenty screens. */
  before?(answer: Answer, asked: Asked): HtmlValue
  more?(answer: Answer, asked: Asked): HtmlValue
}

/** What the command of an operation shows, and what can be changed. */
function operationView<Answer>(path: string, name: string, of: OperationView<Answer>): Route {
  const operation = operationNamed(name)
  const { title, values, prints = [], intro, asks = [], before, more } = of
  const { summary, effect, parameters } = operation
  // As texts: with a form, a view shows what is wrong with them below it.
  const texts = Object.entries(values === undefined ? parameters.shape : {}).map(
    ([one, schema]) => [one, text(metaOf(schema).description)] as const,
  )
  return view({
    path,
    summary,
    right: effects[effect].right,
    parameters: Object.fromEntries(texts),
    async shown(request) {
      const asked = { given: givenTo(request), access: accessOf(request), token: request.access.token }
      const read = readParameters(parameters, values ?? asked.given, request.source.ourNow())
      const used = read.kind === 'values' ? read.values : {}
      const answered =
        read.kind === 'invalid'
          ? parametersRefused(read.problems)
          : (refusedBy(operation, used) ??
            (await answerTo(operation, { ...request, values: used })) ??
            starting())
      if (!('value' in answered)) throw new Error(`${name} has no view`)
      const form = asks.length > 0 && searchForm({ path, operation: name, asks, given: asked.given })
      if (answered.isProblem === true)
        return form === false ? answered : { title, body: html`${form} ${problemReport(answered)}` }
      const answer = answered.value as Answer
      const blocks =
        operation.text?.(answer, { now: nowOf(answer), values: used, prints: new Set(prints) }) ?? []
      const body = html`${intro !== undefined && html`<p class="quiet">${intro}</p>`} ${form}
      ${before?.(answer, asked)} ${blocksView(blocks)} ${more?.(answer, asked)}`
      return { title, body }
    },
  })
}

function givenTo({ request }: PageRequest): Readonly<Record<string, string>> {
  const [, query = ''] = (request.url ?? '').split('?', 2)
  return Object.fromEntries([...new URLSearchParams(query)].filter(([, value]) => value !== ''))
}

// The form of `/page/dead-letter?id=` with which a person corrects a payload and sends
// it.

function editForm(id: string, payload: unknown, token: string | null): Html {
  return html`<h2 id="edit-title">Edit and send</h2>
    <form method="post" action="/page/change">
      <input type="hidden" name="token" value="${token}" /><input
        type="hidden"
        name="change"
        value="dead-letters/edit"
      />
      <input type="hidden" name="id" value="${id}" />
      <label for="body"
        >The corrected payload. It keeps its payloadId, unless you change device, asset or time.</label
      >
      <textarea id="body" name="body" rows="16" spellcheck="false">${jsonText(payload)}</textarea>
      <p>
        <label
          ><input type="checkbox" name="sure" value="1" required /> Replace the payload and send it</label
        >
      </p>
      <button>Send</button>
    </form>`
}
