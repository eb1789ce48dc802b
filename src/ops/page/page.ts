// page.ts: the web page of the gateway: what the ops port shows to people. Entry file of this folder.
//
//   page-views/       the paths, and one file per view
//   frame.ts          answers a request with a view; layout.ts: what every view has around it
//   html.ts           HTML that escapes
//   page-assets.ts    style and scripts, from the package; page.css
//   browser/          scripts of the page, which run in the browser
//
// Every view is complete HTML, made here: it works without scripts. Scripts add what HTML cannot: new values
// without a reload, plots that can be zoomed, copying.
//
// Nothing in a view runs code or names another host: names, topics and payloads are foreign text, the
// template escapes them, and the content security policy allows no script and no style but the files of the
// page.

import type { Route } from '../http/http-routing/route.ts'
import { assetRoutes } from './page-assets.ts'
import { changeRoutes } from './page-views/change-routes.ts'
import { viewRoutes } from './page-views/page-views.ts'

export { overviewPage } from './page-views/page-views.ts'

export const pageRoutes: readonly Route[] = [...viewRoutes, ...changeRoutes, ...assetRoutes]
