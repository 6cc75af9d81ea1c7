// The app: one stack, in the account and region that the command line says.

import { App, DefaultStackSynthesizer } from "aws-cdk-lib";
import { ShopStack } from "./lib/shop-stack";

const app = new App();
new ShopStack(app, "Shop", {
  // There are no assets: the code of the functions is in a bucket of yours.
  synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }),
});
