// TEMPORARY scalar kernels so that the engine links before the real ones land; delete when isa_*.cc exist.
#include <cmath>
#include <cstdint>
#include <cstring>
#include "kernels/kernels.h"
#include "kernels/gemm.h"
#include "kernels/formula_info.h"
namespace dnl { namespace {
#include "kernels/simd_portable.h"
#include "kernels/mathfn.h"
template <class S> void ufwd(idx n, const float* x, float* y, const float* a) { for (idx i = 0; i < n; ++i) { float t[4]={x[i],0,0,0}; F r=S::fwd(load(t),a); store(t,r); y[i]=t[0]; } }
template <class S> void ubwd(idx n, const float* x, const float* y, const float* dy, float* dx, const float* a, bool acc) { for (idx i = 0; i < n; ++i) { float t[4]; F r=S::bwd(F(x[i]),F(y[i]),F(dy[i]),a); store(t,r); dx[i]=acc?dx[i]+t[0]:t[0]; } }
template <class S> void bfwd(idx n, const float* u, idx su, const float* v, idx sv, float* y, const float* a) { for (idx i=0;i<n;++i){ float t[4]; store(t,S::fwd(F(u[i*su]),F(v[i*sv]),a)); y[i]=t[0]; } }
template <class S> void bbwd(idx n, const float* u, idx su, const float* v, idx sv, const float* y, const float* dy, float* du, bool au, float* dv, bool av, const float* a) {
  float su_=0, sv_=0;
  for (idx i=0;i<n;++i){ float t[4];
    if (du){ store(t,S::bwd_u(F(u[i*su]),F(v[i*sv]),F(y[i]),F(dy[i]),a)); if(su) du[i]=au?du[i]+t[0]:t[0]; else su_+=t[0]; }
    if (dv){ store(t,S::bwd_v(F(u[i*su]),F(v[i*sv]),F(y[i]),F(dy[i]),a)); if(sv) dv[i]=av?dv[i]+t[0]:t[0]; else sv_+=t[0]; } }
  if (du&&!su) du[0]=au?du[0]+su_:su_; if (dv&&!sv) dv[0]=av?dv[0]+sv_:sv_; }
#define DNL_UNARY(S)
#define DNL_BINARY(S)
#include "kernels/formulas.h"
#undef DNL_UNARY
#undef DNL_BINARY
const UnaryKernel un[] = {
#define U(S) {S::info.name, ufwd<S>, ubwd<S>},
U(Negate) U(AddConst) U(ConstMinus) U(Scale) U(ConstDiv) U(Square) U(Tanh) U(Exp) U(Logistic) U(Log) U(Rectify) U(Sqrt)
};
const BinaryKernel bi[] = {
#define B(S) {S::info.name, bfwd<S>, bbwd<S>},
B(Add) B(Sub) B(Cmult) B(Cdiv) };
Kernels make() {
  Kernels k{}; k.isa="temporary"; k.unary=un; k.n_unary=sizeof un/sizeof *un; k.binary=bi; k.n_binary=sizeof bi/sizeof *bi;
  k.fill=[](idx n,float v,float*y){for(idx i=0;i<n;++i)y[i]=v;};
  k.add=[](idx n,const float*x,float*y){for(idx i=0;i<n;++i)y[i]+=x[i];};
  k.axpy=[](idx n,float a,const float*x,float*y){for(idx i=0;i<n;++i)y[i]+=a*x[i];};
  k.scale=[](idx n,float a,float*x){for(idx i=0;i<n;++i)x[i]*=a;};
  k.scale_to=[](idx n,float a,const float*x,float*y,bool acc){for(idx i=0;i<n;++i)y[i]=acc?y[i]+a*x[i]:a*x[i];};
  k.copy_rows=[](idx kk,idx n,Rows f,Rows t){for(idx m=0;m<kk;++m)std::memcpy(t[m],f[m],n*4);};
  k.add_rows=[](idx kk,idx n,Rows f,Rows t){for(idx m=0;m<kk;++m)for(idx i=0;i<n;++i)t[m][i]+=f[m][i];};
  k.sum_rows=[](idx kk,idx n,Rows f,float*y,bool acc){if(!acc)for(idx i=0;i<n;++i)y[i]=0;for(idx m=0;m<kk;++m)for(idx i=0;i<n;++i)y[i]+=f[m][i];};
  k.sum=[](idx n,const float*x){float s=0;for(idx i=0;i<n;++i)s+=x[i];return s;};
  k.logsumexp=[](idx n,const float*x){float m=x[0];for(idx i=1;i<n;++i)m=std::fmax(m,x[i]);double s=0;for(idx i=0;i<n;++i)s+=std::exp(x[i]-m);return m+(float)std::log(s);};
  k.exp_shifted=[](idx n,const float*x,float l,float d,float*dx,bool acc){for(idx i=0;i<n;++i){float v=d*std::exp(x[i]-l);dx[i]=acc?dx[i]+v:v;}};
  k.all_finite=[](idx n,const float*x){for(idx i=0;i<n;++i)if(!std::isfinite(x[i]))return false;return true;};
  return k; }
}
const Kernels& kernels(){ static const Kernels k=make(); return k; }
const char* blas_description(){return "temporary";}
void gemm(bool ta,bool tb,idx m,idx n,idx k,float al,const float*a,idx lda,const float*b,idx ldb,float be,float*c,idx ldc){
  for(idx j=0;j<n;++j)for(idx i=0;i<m;++i){double s=0;for(idx p=0;p<k;++p)s+=(double)(ta?a[i*lda+p]:a[p*lda+i])*(tb?b[p*ldb+j]:b[j*ldb+p]);c[j*ldc+i]=(float)(al*s+(be?be*c[j*ldc+i]:0));}}
}
