// change-routes.ts: `/page/change`: GET asks, POST changes. Both need the right to change; http-routing
// checks the token of the form.

import { z } from 'zod'
import { changeByForm } from '../../http/control.ts'
import { effects, type Operation } from '../../operations/operation.ts'
import { operations } from '../../operations/operations.ts'
import { noParameters, requiredText, text } from '../../http/http-routing/parameters.ts'
import { route, type Route, type RouteAnswer } from '../../http/http-routing/route.ts'
import { badRequest, type JsonAnswer } from '../../http/json-answer.ts'
import { inFrame, type PageRequest } from '../frame.ts'
import { takesYes } from '../page-changes.ts'
import { pageType } from '../layout.ts'
import { changeQuestion, changeResult, placeOf, report } from './change-page.ts'

const path = '/page/change'
const formBytesMax = 1024 * 1024
const form = 'application/x-www-form-urlencoded'

/** Parameters of changes; the form of the question adds `yes`. */
const selections = new Set(
  operations
    .filter(({ effect }) => effect === 'changes')
    .flatMap(({ parameters }) => Object.keys(parameters.shape))
    .filter((name) => name !== 'yes' && name !== 'dryRun'),
)

const asked = z.strictObject({
  change: requiredText('Name of the change, behind /control/.'),
  ...Object.fromEntries([...selections].map((name) => [name, text('As POST /control/NAME takes it.')])),
})

export const changeRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path,
    summary: 'Asks before a change, and shows what it would do.',
    right: 'change',
    page: true,
    parameters: asked,
    answers: { 200: { means: 'The question.', contentType: pageType } },
    answer: (request) =>
      inFrame(request, async () => {
        const { change, ...values } = request.values as Record<string, string | undefined> & {
          change: string
        }
        const known = operations.find(
          ({ name, effect }) => name === change && effects[effect].right === 'change',
        )
        if (known === undefined) return badRequest('There is no such change.', 'Go back to the view.')
        const given = Object.entries(values).filter((pair): pair is [string, string] => pair[1] !== undefined)
        const parameters = Object.fromEntries(given)
        const preview = await previewOf(request, known, parameters)
        const body = changeQuestion({
          change,
          summary: known.summary,
          parameters,
          preview: preview && report(known, preview, parameters),
          isPossible: preview?.isProblem !== true,
          token: request.access.token,
        })
        return { title: titleOf(change), path: placeOf(change), body }
      }),
  }),
  route({
    method: 'POST',
    path,
    summary: 'Makes a change that a view asked for.',
    right: 'change',
    page: true,
    parameters: noParameters,
    form: { bytesMax: formBytesMax, token: 'checked' },
    body: { contentType: form, means: 'The fields `token` and `change`, and the parameters of the change.' },
    answers: { 200: { means: 'What was done.', contentType: pageType } },
    answer: (request) => changed(request),
  }),
]

async function changed(request: PageRequest): Promise<RouteAnswer> {
  const { change = '', token: _token, body: _body, sure: _sure, ...given } = Object.fromEntries(request.form)
  const answer = jsonOf(await changeByForm(request, change))
  const operation = operations.find(({ name }) => name === change)
  if (answer === null || operation === undefined)
    return answer ?? badRequest('The change gives no report.', 'Use the command.')
  return inFrame(request, () => ({
    title: answer.isProblem === true ? `${titleOf(change)}: refused` : `${titleOf(change)}: done`,
    path: placeOf(change),
    status: answer.status,
    body: changeResult({
      change,
      parameters: given,
      isDone: answer.isProblem !== true,
      shown: report(operation, answer, given),
    }),
  }))
}

/** What it would do; null where that cannot be known before. */
async function previewOf(
  request: PageRequest,
  { name, parameters: { shape } }: Operation,
  parameters: Readonly<Record<string, string>>,
): Promise<JsonAnswer | null> {
  const isDry = 'dryRun' in shape
  if (!isDry && !takesYes(name)) return null
  const asks = new URLSearchParams({ ...parameters, ...(isDry && { dryRun: '1' }) })
  return jsonOf(await changeByForm({ ...request, form: asks }, name))
}

function jsonOf(answer: RouteAnswer): JsonAnswer | null {
  return typeof answer === 'object' && 'value' in answer ? answer : null
}

function titleOf(change: string): string {
  const words = change.replaceAll(/[-/]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
