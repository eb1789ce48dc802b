// route-table.ts: all paths of the ops port.

import { pageRoutes } from '../page/page.ts'
import { operationRoutes } from './control.ts'
import { loginRoutes } from './login-routes.ts'
import { readRoutes } from './read-routes.ts'
import { documentRoute } from './http-routing/openapi.ts'
import { listRoute } from './http-routing/route-list.ts'
import { streamRoutes } from './streams/streams.ts'
import type { Route } from './http-routing/route.ts'

export const routes: readonly Route[] = [
  listRoute(() => routes),
  documentRoute(() => routes),
  ...readRoutes,
  ...streamRoutes,
  ...loginRoutes,
  ...operationRoutes,
  ...pageRoutes,
]
