// route-list.ts: GET /: the overview of the page for a browser, else all paths as JSON.

import { z } from 'zod'
import { historySpans } from '../../history/history.ts'
import { pageType } from '../../page/layout.ts'
import { overviewPage } from '../../page/page.ts'
import { prefersHtml } from '../accepted-type.ts'
import { ok } from '../json-answer.ts'
import { choice, metaOf } from './parameters.ts'
import { methodsOf, route, type Route } from './route.ts'

export function listRoute(routes: () => readonly Route[]): Route {
  return route({
    method: 'GET',
    path: '/',
    summary: 'Shows the overview of the page to browsers; else lists all paths as JSON.',
    right: 'read',
    page: true,
    parameters: z.strictObject({ span: choice('Of the page: the time that its plots show.', historySpans) }),
    answers: { 200: { means: 'The paths.', schema: pathListSchema, otherType: pageType } },
    answer: (request) => {
      if (prefersHtml(request.request.headers.accept)) return overviewPage(request, request.values.span)
      return { ...ok(listOf(routes())), headers: { vary: 'accept' } }
    },
  })
}

const pathListSchema = z.strictObject({
  paths: z.array(
    z.strictObject({
      path: z.string(),
      methods: z.array(z.string()),
      summary: z.string(),
      parameters: z.array(
        z.strictObject({
          name: z.string(),
          in: z.enum(['path', 'query']),
          required: z.boolean(),
          description: z.string(),
          rule: z.string(),
          allowed: z.array(z.string()).optional(),
        }),
      ),
    }),
  ),
})

export function listOf(routes: readonly Route[]): z.output<typeof pathListSchema> {
  return {
    paths: routes.map((one) => ({
      path: one.path,
      methods: [...methodsOf(one)],
      summary: one.summary,
      parameters: [
        ...(one.path.includes('{key}') ? [keyParameter] : []),
        ...Object.entries(one.parameters.shape).map(([name, schema]) => {
          const { required, description, rule, allowed } = metaOf(schema)
          const more = allowed === undefined ? {} : { allowed: [...allowed] }
          return { name, in: 'query' as const, required, description, rule, ...more }
        }),
      ],
    })),
  }
}

export const keyParameter = {
  name: 'key',
  in: 'path' as const,
  required: true,
  description: 'The key of the device.',
  rule: 'a text, percent-encoded',
}
